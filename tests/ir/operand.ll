; EDIT {"kind":"operand","at":"i2","operand":1,"value":"i0"}
; SAYS makes operand 1 of the fadd i2 the load i0 [bold: the instruction computes with another value]
; DIFF -  %i2 = fadd float %i1, 2.000000e+00
; DIFF +  %i2 = fadd float %i1, %i0

target triple = "nvptx64-nvidia-cuda"
define ptx_kernel void @k(ptr %x, ptr %y, i32 %n, float %f) {
  %a = load float, ptr %x, align 4
  %b = fmul float %a, %f
  %c = fadd float %b, 2.0
  store float %c, ptr %y, align 4
  ret void
}
