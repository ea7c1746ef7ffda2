; The first vote becomes its own predicate, the ballot a full mask.
; EDIT {"kind":"drop-vote","at":"i1"}
; EDIT {"kind":"drop-vote","at":"i2"}
; SAYS drops the vote i1 [bold: lanes no longer agree]
; SAYS drops the vote i2 [bold: lanes no longer agree]
; DIFF -  %i1 = call i1 @llvm.nvvm.vote.any.sync(i32 -1, i1 %i0)
; DIFF -  %i2 = call i32 @llvm.nvvm.vote.ballot.sync(i32 -1, i1 %i0)
; DIFF -  %i3 = zext i1 %i1 to i32
; DIFF -  %i4 = add i32 %i3, %i2
; DIFF +  %i3 = zext i1 %i0 to i32
; DIFF +  %i4 = add i32 %i3, -1

target triple = "nvptx64-nvidia-cuda"
declare i1 @llvm.nvvm.vote.any.sync(i32, i1)
declare i32 @llvm.nvvm.vote.ballot.sync(i32, i1)
define ptx_kernel void @k(ptr %x, ptr %y, i32 %n, float %f) {
  %c = icmp sgt i32 %n, 3
  %v = call i1 @llvm.nvvm.vote.any.sync(i32 -1, i1 %c)
  %m = call i32 @llvm.nvvm.vote.ballot.sync(i32 -1, i1 %c)
  %z = zext i1 %v to i32
  %s = add i32 %z, %m
  store i32 %s, ptr %y, align 4
  ret void
}
