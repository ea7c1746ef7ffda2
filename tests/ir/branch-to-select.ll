; The sides stay behind, reached by nothing, until the optimiser comes.
; EDIT {"kind":"branch-to-select","at":"i1"}
; SAYS computes both sides of the branch i1 and selects [bold here: preserving where neither side loads]
; DIFF -  br i1 %i0, label %b1, label %b2
; DIFF -b1:
; DIFF +  %i4 = load float, ptr %a0, align 4
; DIFF +  %e0.0 = select i1 %i0, float %i2, float %i4
; DIFF +b1:
; DIFF +  br label %b3
; DIFF -  %i4 = load float, ptr %a0, align 4
; DIFF -  %i6 = phi float [ %i2, %b1 ], [ %i4, %b2 ]
; DIFF +  %i6 = phi float [ %i2, %b1 ], [ %i4, %b2 ], [ %e0.0, %b0 ]

target triple = "nvptx64-nvidia-cuda"
define ptx_kernel void @k(ptr %x, ptr %y, i32 %n, float %f) {
  %c = icmp slt i32 %n, 5
  br i1 %c, label %yes, label %no
yes:
  %a = fmul float %f, 3.0
  br label %join
no:
  %b = load float, ptr %x, align 4
  br label %join
join:
  %r = phi float [ %a, %yes ], [ %b, %no ]
  store float %r, ptr %y, align 4
  ret void
}
