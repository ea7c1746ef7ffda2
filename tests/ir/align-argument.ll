; EDIT {"kind":"align-argument","value":"a0"}
; SAYS asserts 16-byte alignment of argument 0
; DIFF -define ptx_kernel void @k(ptr %a0, ptr %a1, i32 %a2, float %a3) {
; DIFF +define ptx_kernel void @k(ptr align 16 %a0, ptr %a1, i32 %a2, float %a3) {

target triple = "nvptx64-nvidia-cuda"
define ptx_kernel void @k(ptr %x, ptr %y, i32 %n, float %f) {
  %a = load float, ptr %x, align 4
  %b = fmul float %a, %f
  %c = fadd float %b, 2.0
  store float %c, ptr %y, align 4
  ret void
}
