; A vector of a global variable.
; EDIT {"kind":"align","at":"i0","option":16}
; PTX .global .align 16 .b8 g[64]

target triple = "nvptx64-nvidia-cuda"
@g = internal addrspace(1) global [16 x float] zeroinitializer, align 4
define ptx_kernel void @k(ptr %x, ptr %y) {
  %a = load volatile float, ptr addrspacecast (ptr addrspace(1) @g to ptr), align 4
  store volatile float %a, ptr addrspacecast (ptr addrspace(1) @g to ptr), align 4
  store float %a, ptr %y, align 4
  ret void
}
