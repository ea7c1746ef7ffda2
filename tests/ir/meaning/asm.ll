; Inline assembly may write anywhere.
; EDIT {"kind":"cache-policy","at":"i0","option":0}
; BOLD yes

target triple = "nvptx64-nvidia-cuda"
define ptx_kernel void @k(ptr noalias %x, ptr noalias %y) {
  %a = load float, ptr %x, align 4
  call void asm sideeffect "st.global.f32 [$0], $1;", "l,f"(ptr %x, float %a)
  store float %a, ptr %y, align 4
  ret void
}
