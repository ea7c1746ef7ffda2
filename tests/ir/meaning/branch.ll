; A side that loads may be the test of a bound; pure sides may run always.
; EDIT {"kind":"branch-to-select","at":"i2"}
; BOLD no
; EDIT {"kind":"branch-to-select","at":"i7"}
; BOLD yes
; EDIT {"kind":"select-to-branch","at":"i12","option":0}
; BOLD no

target triple = "nvptx64-nvidia-cuda"
define ptx_kernel void @k(ptr noalias %x, ptr noalias %y, i32 %n, float %f) {
entry:
  %c = icmp slt i32 %n, 5
  %d = icmp slt i32 %n, 9
  br i1 %c, label %pure, label %next
pure:
  %m = fmul float %f, %f
  br label %next
next:
  %v = phi float [ %m, %pure ], [ %f, %entry ]
  %k = icmp slt i32 %n, 7
  br i1 %k, label %loads, label %end
loads:
  %a = load float, ptr %x, align 4
  br label %end
end:
  %w = phi float [ %a, %loads ], [ %v, %next ]
  %t = fadd float %w, 1.0
  %r = select i1 %d, float %t, float %w
  store float %r, ptr %y, align 4
  ret void
}
