; EDIT {"kind":"constant","at":"i1","operand":1,"value":0.5}
; SAYS makes operand 1 of the fmul i1 0.5 [bold: the operand may have another value]
; DIFF -  %i1 = fmul float %i0, %a3
; DIFF +  %i1 = fmul float %i0, 5.000000e-01
; PTX 0f3F000000

target triple = "nvptx64-nvidia-cuda"
define ptx_kernel void @k(ptr %x, ptr %y, i32 %n, float %f) {
  %a = load float, ptr %x, align 4
  %b = fmul float %a, %f
  %c = fadd float %b, 2.0
  store float %c, ptr %y, align 4
  ret void
}
