; Two stores to a shared variable as one.
; EDIT {"kind":"widen","at":"i6","option":2}
; PTX .align 8 .b8 s[256]

target triple = "nvptx64-nvidia-cuda"
@s = internal addrspace(3) global [64 x float] undef, align 4
define ptx_kernel void @k(ptr %x, ptr %y) {
  %v = load float, ptr %x, align 4
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %four = shl i32 %t, 2
  %i = zext i32 %four to i64
  %p0 = getelementptr inbounds [64 x float], ptr addrspacecast (ptr addrspace(3) @s to ptr), i64 0, i64 %i
  %p1 = getelementptr inbounds i8, ptr %p0, i64 4
  store float %v, ptr %p0, align 4
  store float %v, ptr %p1, align 4
  call void @llvm.nvvm.barrier0()
  %a = load float, ptr %p0, align 4
  %b = load float, ptr %p1, align 4
  %c = fadd float %a, %b
  store float %c, ptr %y, align 4
  ret void
}
declare void @llvm.nvvm.barrier0()
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
