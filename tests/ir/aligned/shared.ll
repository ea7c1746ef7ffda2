; A load of a shared variable.
; EDIT {"kind":"align","at":"i2","option":16}
; PTX .align 16 .b8 s[256]

target triple = "nvptx64-nvidia-cuda"
@s = internal addrspace(3) global [64 x float] undef, align 4
define ptx_kernel void @k(ptr %x, ptr %y) {
  store volatile float 1.0, ptr addrspacecast (ptr addrspace(3) @s to ptr), align 4
  %p = getelementptr inbounds [64 x float], ptr addrspacecast (ptr addrspace(3) @s to ptr), i64 0, i64 4
  %a = load volatile float, ptr %p, align 4
  store float %a, ptr %y, align 4
  ret void
}
