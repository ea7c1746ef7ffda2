; The launches of the test have 64 x 2 threads.
; EDIT {"kind":"max-threads","option":128}
; SAYS tells the compiler that a block has 128 threads
; DIFF +!nvvm.annotations = !{!0, !1, !2}
; DIFF +!0 = !{ptr @k, !"maxntidx", i32 64}
; DIFF +!1 = !{ptr @k, !"maxntidy", i32 2}
; DIFF +!2 = !{ptr @k, !"maxntidz", i32 1}
; PTX .maxntid 64, 2, 1

target triple = "nvptx64-nvidia-cuda"
define ptx_kernel void @k(ptr %x, ptr %y, i32 %n, float %f) {
  %a = load float, ptr %x, align 4
  %b = fmul float %a, %f
  %c = fadd float %b, 2.0
  store float %c, ptr %y, align 4
  ret void
}
