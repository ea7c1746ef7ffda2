; Arguments that cannot overlap: %x is read only, %y is written. i1 and i3 load them.
; EDIT {"kind":"cache-policy","at":"i0","option":0}
; BOLD no
; EDIT {"kind":"cache-policy","at":"i3","option":0}
; BOLD yes
; EDIT {"kind":"sink","at":"i0"}
; BOLD no
; EDIT {"kind":"hoist","at":"i7"}
; BOLD yes

target triple = "nvptx64-nvidia-cuda"
define ptx_kernel void @k(ptr noalias %x, ptr noalias %y, i32 %n, float %f) {
entry:
  %a = load float, ptr %x, align 4
  %c = icmp slt i32 %n, 5
  br i1 %c, label %then, label %done
then:
  %old = load float, ptr %y, align 4
  %s = fadd float %a, %old
  store float %s, ptr %y, align 4
  br label %loop
loop:
  %q = load float, ptr %x, align 4
  store float %q, ptr %y, align 4
  %again = icmp slt i32 %n, 2
  br i1 %again, label %loop, label %done
done:
  ret void
}
