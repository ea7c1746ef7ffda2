; An atomic writes to its argument.
; EDIT {"kind":"cache-policy","at":"i0","option":0}
; BOLD yes
; EDIT {"kind":"cache-policy","at":"i1","option":0}
; BOLD no

target triple = "nvptx64-nvidia-cuda"
define ptx_kernel void @k(ptr noalias %x, ptr noalias %y) {
  %a = load float, ptr %x, align 4
  %b = load float, ptr %y, align 4
  %s = fadd float %a, %b
  %old = atomicrmw fadd ptr %x, float %s seq_cst, align 4
  ret void
}
