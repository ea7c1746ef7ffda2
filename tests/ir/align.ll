; EDIT {"kind":"align","at":"i0","option":16}
; SAYS asserts 16-byte alignment of the load i0 [bold here: preserving where the alignment follows from what is known of the address]
; DIFF -  %i0 = load float, ptr %a0, align 4
; DIFF +  %i0 = load float, ptr %a0, align 16

target triple = "nvptx64-nvidia-cuda"
define ptx_kernel void @k(ptr %x, ptr %y, i32 %n, float %f) {
  %a = load float, ptr %x, align 4
  %b = fmul float %a, %f
  %c = fadd float %b, 2.0
  store float %c, ptr %y, align 4
  ret void
}
