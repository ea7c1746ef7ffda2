; A vector of a constant.
; EDIT {"kind":"align","at":"i0","option":16}
; PTX .const .align 16 .b8 c[16]

target triple = "nvptx64-nvidia-cuda"
@c = internal addrspace(4) externally_initialized constant [4 x float] [float 1.0, float 2.0, float 3.0, float 4.0], align 4
define ptx_kernel void @k(ptr %x, ptr %y) {
  %a = load volatile float, ptr addrspacecast (ptr addrspace(4) @c to ptr), align 4
  store float %a, ptr %y, align 4
  ret void
}
