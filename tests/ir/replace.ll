; The addition becomes a copy of the product.
; EDIT {"kind":"replace","at":"i2","to":"i1"}
; SAYS replaces the fadd i2 by a copy of the fmul i1 [bold: the uses take another value]
; DIFF -  %i2 = fadd float %i1, 2.000000e+00
; DIFF -  store float %i2, ptr %a1, align 4
; DIFF +  %e0.0 = fmul float %i0, %a3
; DIFF +  store float %e0.0, ptr %a1, align 4

target triple = "nvptx64-nvidia-cuda"
define ptx_kernel void @k(ptr %x, ptr %y, i32 %n, float %f) {
  %a = load float, ptr %x, align 4
  %b = fmul float %a, %f
  %c = fadd float %b, 2.0
  store float %c, ptr %y, align 4
  ret void
}
