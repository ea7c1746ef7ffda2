; Option 1: reassociation.
; EDIT {"kind":"fast-math","at":"i1","option":1}
; SAYS allows reassociation on the fmul i1
; DIFF -  %i1 = fmul float %i0, %a3
; DIFF +  %i1 = fmul reassoc nsz float %i0, %a3

target triple = "nvptx64-nvidia-cuda"
define ptx_kernel void @k(ptr %x, ptr %y, i32 %n, float %f) {
  %a = load float, ptr %x, align 4
  %b = fmul float %a, %f
  %c = fadd float %b, 2.0
  store float %c, ptr %y, align 4
  ret void
}
