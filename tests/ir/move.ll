; What used it before it is computed is repaired.
; EDIT {"kind":"move","at":"i1","to":"i3","repairs":[["i2",0,"i0"]]}
; SAYS moves the fmul i1 to before the store i3 (1 repair) [bold: the order of memory accesses and barriers changes, and uses take other values]
; DIFF +  %i2 = fadd float %i0, 2.000000e+00
; DIFF -  %i2 = fadd float %i1, 2.000000e+00

target triple = "nvptx64-nvidia-cuda"
define ptx_kernel void @k(ptr %x, ptr %y, i32 %n, float %f) {
  %a = load float, ptr %x, align 4
  %b = fmul float %a, %f
  %c = fadd float %b, 2.0
  store float %c, ptr %y, align 4
  ret void
}
