; EDIT {"kind":"max-registers","option":32}
; SAYS limits a thread to 32 registers
; DIFF +!nvvm.annotations = !{!0}
; DIFF +!0 = !{ptr @k, !"maxnreg", i32 32}
; PTX .maxnreg 32

target triple = "nvptx64-nvidia-cuda"
define ptx_kernel void @k(ptr %x, ptr %y, i32 %n, float %f) {
  %a = load float, ptr %x, align 4
  %b = fmul float %a, %f
  %c = fadd float %b, 2.0
  store float %c, ptr %y, align 4
  ret void
}
