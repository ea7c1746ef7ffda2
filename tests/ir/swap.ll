; The addition comes first, and takes the repair for the product.
; EDIT {"kind":"swap","at":"i1","to":"i2","repairs":[["i2",0,1.0]]}
; SAYS swaps the fmul i1 and the fadd i2 (1 repair) [bold: the order changes, and uses take other values]
; DIFF +  %i2 = fadd float 1.000000e+00, 2.000000e+00
; DIFF -  %i2 = fadd float %i1, 2.000000e+00

target triple = "nvptx64-nvidia-cuda"
define ptx_kernel void @k(ptr %x, ptr %y, i32 %n, float %f) {
  %a = load float, ptr %x, align 4
  %b = fmul float %a, %f
  %c = fadd float %b, 2.0
  store float %c, ptr %y, align 4
  ret void
}
