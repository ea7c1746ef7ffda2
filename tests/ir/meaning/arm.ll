; The arm is a load. Moving it behind the store that may reach its memory is bold.
; EDIT {"kind":"select-to-branch","at":"i3","option":0}
; BOLD yes
; EDIT {"kind":"select-to-branch","at":"i6","option":0}
; BOLD no

target triple = "nvptx64-nvidia-cuda"
define ptx_kernel void @k(ptr noalias %x, ptr noalias %y, i32 %n, float %f) {
  %c = icmp slt i32 %n, 5
  %a = load float, ptr %y, align 4
  store float 1.0, ptr %y, align 4
  %r = select i1 %c, float %a, float %f
  %b = load float, ptr %x, align 4
  store float %r, ptr %y, align 4
  %q = select i1 %c, float %b, float %f
  store float %q, ptr %y, align 4
  ret void
}
