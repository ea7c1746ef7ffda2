; The IR before the passes is the base's.
; EDIT {"kind":"pipeline","option":3}
; SAYS optimises with hardly any passes: sroa and simplifycfg

target triple = "nvptx64-nvidia-cuda"
define ptx_kernel void @k(ptr %x, ptr %y, i32 %n, float %f) {
  %a = load float, ptr %x, align 4
  %b = fmul float %a, %f
  %c = fadd float %b, 2.0
  store float %c, ptr %y, align 4
  ret void
}
