; To assert that values are not NaN or infinite is bold; other flags round.
; EDIT {"kind":"fast-math","at":"i1","option":0}
; BOLD no
; EDIT {"kind":"fast-math","at":"i1","option":1}
; BOLD no
; EDIT {"kind":"fast-math","at":"i1","option":4}
; BOLD yes
; EDIT {"kind":"fast-math","at":"i1","option":5}
; BOLD yes
; EDIT {"kind":"fast-math","at":"i1","option":6}
; BOLD no
; EDIT {"kind":"chain-math","at":"i2","option":5}
; BOLD yes
; EDIT {"kind":"chain-math","at":"i2","option":6}
; BOLD no

target triple = "nvptx64-nvidia-cuda"
define ptx_kernel void @k(ptr noalias %x, ptr noalias %y, i32 %n, float %f) {
  %a = load float, ptr %x, align 4
  %b = fmul float %a, %f
  %c = fadd float %b, %a
  store float %c, ptr %y, align 4
  ret void
}
