; The load takes what was stored at its address.
; EDIT {"kind":"forward-value","at":"i1","value":"a3"}
; SAYS takes argument 3 in place of the load i1 [bold: the forwarded value may differ from the replaced one]
; DIFF -  %i1 = load float, ptr %a0, align 4
; DIFF -  store float %i1, ptr %a1, align 4
; DIFF +  store float %a3, ptr %a1, align 4

target triple = "nvptx64-nvidia-cuda"
define ptx_kernel void @k(ptr %x, ptr %y, i32 %n, float %f) {
  store float %f, ptr %x, align 4
  %v = load float, ptr %x, align 4
  store float %v, ptr %y, align 4
  ret void
}
