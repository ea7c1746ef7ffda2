; EDIT {"kind":"drop-store","at":"i3"}
; SAYS drops the store i3 [bold: a value is no longer written]
; DIFF -  store float %i2, ptr %a1, align 4

target triple = "nvptx64-nvidia-cuda"
define ptx_kernel void @k(ptr %x, ptr %y, i32 %n, float %f) {
  %a = load float, ptr %x, align 4
  %b = fmul float %a, %f
  %c = fadd float %b, 2.0
  store float %c, ptr %y, align 4
  ret void
}
