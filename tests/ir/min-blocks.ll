; Needs the block size, and so asserts it too.
; EDIT {"kind":"min-blocks","option":4}
; SAYS asks for registers such that 4 blocks fit an SM
; DIFF +!nvvm.annotations = !{!0, !1, !2, !3}
; DIFF +!0 = !{ptr @k, !"maxntidx", i32 64}
; DIFF +!1 = !{ptr @k, !"maxntidy", i32 2}
; DIFF +!2 = !{ptr @k, !"maxntidz", i32 1}
; DIFF +!3 = !{ptr @k, !"minctasm", i32 4}
; PTX .minnctapersm 4

target triple = "nvptx64-nvidia-cuda"
define ptx_kernel void @k(ptr %x, ptr %y, i32 %n, float %f) {
  %a = load float, ptr %x, align 4
  %b = fmul float %a, %f
  %c = fadd float %b, 2.0
  store float %c, ptr %y, align 4
  ret void
}
