; EDIT {"kind":"drop-barrier","at":"i3"}
; SAYS drops the barrier i3 [bold: threads no longer wait for each other]
; DIFF -  call void @llvm.nvvm.barrier0()

target triple = "nvptx64-nvidia-cuda"
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare void @llvm.nvvm.barrier0()
declare void @llvm.nvvm.membar.sys()
define ptx_kernel void @k(ptr %x, ptr %y, i32 %n, float %f) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %p = getelementptr float, ptr %x, i32 %t
  store float %f, ptr %p, align 4
  call void @llvm.nvvm.barrier0()
  call void @llvm.nvvm.membar.sys()
  %v = load float, ptr %x, align 4
  store float %v, ptr %y, align 4
  ret void
}
