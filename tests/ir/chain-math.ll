; Option 0, contraction, goes up through the product.
; EDIT {"kind":"chain-math","at":"i2","option":0}
; SAYS allows contraction on the fadd i2 and all that it is computed from
; DIFF -  %i1 = fmul float %i0, %a3
; DIFF -  %i2 = fadd float %i1, 2.000000e+00
; DIFF +  %i1 = fmul contract float %i0, %a3
; DIFF +  %i2 = fadd contract float %i1, 2.000000e+00
; PTX fma.rn.f32

target triple = "nvptx64-nvidia-cuda"
define ptx_kernel void @k(ptr %x, ptr %y, i32 %n, float %f) {
  %a = load float, ptr %x, align 4
  %b = fmul float %a, %f
  %c = fadd float %b, 2.0
  store float %c, ptr %y, align 4
  ret void
}
