; An argument has no alignment of its own to raise; the variable beside it stays.
; EDIT {"kind":"align","at":"i0","option":16}
; PTX .align 4 .b8 s[256]

target triple = "nvptx64-nvidia-cuda"
@s = internal addrspace(3) global [64 x float] undef, align 4
define ptx_kernel void @k(ptr %x, ptr %y) {
  %v = load float, ptr %x, align 4
  store volatile float %v, ptr addrspacecast (ptr addrspace(3) @s to ptr), align 4
  %a = load volatile float, ptr addrspacecast (ptr addrspace(3) @s to ptr), align 4
  store float %a, ptr %y, align 4
  ret void
}
