; The load moves into the branch of the second arm.
; EDIT {"kind":"select-to-branch","at":"i2","option":1}
; SAYS computes the second arm only where it is taken, of the select i2
; DIFF -b0:
; DIFF +e0.b0:
; DIFF +  br i1 %i0, label %b0, label %e0.b1, !prof !0
; DIFF +e0.b1:
; DIFF -  %i2 = select i1 %i0, float %a3, float %i1
; DIFF -  store float %i2, ptr %a1, align 4
; DIFF +  br label %b0
; DIFF +b0:
; DIFF +  %e0.2 = phi float [ %i1, %e0.b1 ], [ %a3, %e0.b0 ]
; DIFF +  store float %e0.2, ptr %a1, align 4
; DIFF +!0 = !{!"branch_weights", i32 2000, i32 1}
; PTX bra

target triple = "nvptx64-nvidia-cuda"
define ptx_kernel void @k(ptr %x, ptr %y, i32 %n, float %f) {
  %c = icmp slt i32 %n, 5
  %b = load float, ptr %x, align 4
  %r = select i1 %c, float %f, float %b
  store float %r, ptr %y, align 4
  ret void
}
