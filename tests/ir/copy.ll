; The copy takes an operand of the store.
; EDIT {"kind":"copy","at":"i1","to":"i3","use":["i3",0]}
; SAYS copies the fmul i1 to before the store i3 and uses it as operand 0 of the store i3 [bold: a copied store or barrier runs at another place]
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
