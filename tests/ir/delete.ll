; The use of what is deleted takes the stored repair.
; EDIT {"kind":"delete","at":"i1","repairs":[["i2",0,"a3"]]}
; SAYS deletes the fmul i1 (1 repair) [bold: the uses take another value]
; DIFF -  %i1 = fmul float %i0, %a3
; DIFF -  %i2 = fadd float %i1, 2.000000e+00
; DIFF +  %i2 = fadd float %a3, 2.000000e+00

target triple = "nvptx64-nvidia-cuda"
define ptx_kernel void @k(ptr %x, ptr %y, i32 %n, float %f) {
  %a = load float, ptr %x, align 4
  %b = fmul float %a, %f
  %c = fadd float %b, 2.0
  store float %c, ptr %y, align 4
  ret void
}
