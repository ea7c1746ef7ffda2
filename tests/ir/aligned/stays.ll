; A variable that declares enough stays as it is.
; EDIT {"kind":"align","at":"i0","option":8}
; PTX .align 32 .b8 s[256]

target triple = "nvptx64-nvidia-cuda"
@s = internal addrspace(3) global [64 x float] undef, align 32
define ptx_kernel void @k(ptr %x, ptr %y) {
  store volatile float 1.0, ptr addrspacecast (ptr addrspace(3) @s to ptr), align 4
  %a = load volatile float, ptr addrspacecast (ptr addrspace(3) @s to ptr), align 4
  store float %a, ptr %y, align 4
  ret void
}
