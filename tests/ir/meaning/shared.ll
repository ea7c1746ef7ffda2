; A store to shared memory does not reach an argument; a call of unknown code may write anywhere.
; EDIT {"kind":"cache-policy","at":"i0","option":0}
; BOLD no

target triple = "nvptx64-nvidia-cuda"
@s = internal addrspace(3) global [32 x float] poison, align 4
declare void @llvm.nvvm.barrier0()
define ptx_kernel void @k(ptr noalias %x, ptr noalias %y) {
  %a = load float, ptr %x, align 4
  store float %a, ptr addrspacecast (ptr addrspace(3) @s to ptr), align 4
  call void @llvm.nvvm.barrier0()
  %b = load float, ptr addrspacecast (ptr addrspace(3) @s to ptr), align 4
  store float %b, ptr %y, align 4
  ret void
}
