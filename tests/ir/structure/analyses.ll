; Functions of test_structure_analyses.c.
target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

@tile = internal addrspace(3) global [64 x float] undef, align 4

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x() #0
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.y() #0
declare void @llvm.nvvm.barrier0()

; An outer loop of n turns around two inner ones, of 7 constant turns and of a walk down to zero.
define void @nested(ptr %x, i32 %n) {
entry:
  br label %outer
outer:
  %i = phi i32 [ 0, %entry ], [ %i1, %done ]
  %more = icmp slt i32 %i, %n
  br i1 %more, label %first, label %out
first:
  %j = phi i32 [ 3, %outer ], [ %j1, %first ]
  %j1 = add nsw i32 %j, 2
  %again = icmp ult i32 %j1, 17
  br i1 %again, label %first, label %second
second:
  %k = phi i32 [ %n, %first ], [ %k1, %body ]
  %some = icmp eq i32 %k, 0
  br i1 %some, label %done, label %body
body:
  %k1 = add nsw i32 %k, -1
  br label %second
done:
  %i1 = add nuw nsw i32 %i, 1
  br label %outer
out:
  ret void
}

; x[tid + 3 (ctaid + n) + 5] and tile[2 tid]; the test tid - n < 4.
define void @addresses(ptr %x, i32 %n) {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
  %a = add nsw i32 %block, %n
  %b = mul nsw i32 %a, 3
  %c = add nsw i32 %b, %tid
  %d = sext i32 %c to i64
  %p = getelementptr inbounds float, ptr %x, i64 %d
  %q = getelementptr inbounds i8, ptr %p, i64 20
  %v = load float, ptr %q, align 4
  %e = shl nuw nsw i32 %tid, 1
  %f = zext nneg i32 %e to i64
  %r = getelementptr inbounds [64 x float], ptr addrspacecast (ptr addrspace(3) @tile to ptr), i64 0, i64 %f
  store float %v, ptr %r, align 4
  %g = mul i32 %tid, %n
  %h = sub i32 %g, %g
  %less = sub nsw i32 %tid, %n
  %test = icmp slt i32 %less, 4
  ret void
}

; What differs among the threads, or among the blocks along y.
define void @differs(ptr %x, i32 %n) {
entry:
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
  %at = sext i32 %tid to i64
  %slot = getelementptr inbounds [64 x float], ptr addrspacecast (ptr addrspace(3) @tile to ptr), i64 0, i64 %at
  store float 1.0, ptr %slot, align 4
  call void @llvm.nvvm.barrier0()
  %early = load float, ptr addrspacecast (ptr addrspace(3) @tile to ptr), align 4
  %odd = and i32 %tid, 1
  %is_odd = icmp eq i32 %odd, 0
  br i1 %is_odd, label %left, label %right
left:
  br label %join
right:
  br label %join
join:
  %side = phi i32 [ 1, %left ], [ 2, %right ]
  %same = mul i32 %n, 7
  %own = sitofp i32 %block to float
  call void @llvm.nvvm.barrier0()
  store float %own, ptr %slot, align 4
  call void @llvm.nvvm.barrier0()
  %late = load float, ptr addrspacecast (ptr addrspace(3) @tile to ptr), align 4
  br label %turn
turn:
  %k = phi i32 [ 0, %join ], [ %k1, %rest ]
  %k1 = add nsw i32 %k, 1
  %leaves = icmp eq i32 %k, %block
  br i1 %leaves, label %out, label %rest
rest:
  br label %turn
out:
  %last = phi i32 [ %k1, %turn ]
  ret void
}

attributes #0 = { nounwind speculatable willreturn memory(none) }

; counters of 8 bits: one ends behind 250 in its type, one wraps around before
define void @narrow() {
entry:
  br label %a
a:
  %i = phi i8 [ 0, %entry ], [ %i2, %a ]
  %i2 = add i8 %i, 50
  %goes = icmp ult i8 %i2, -6
  br i1 %goes, label %a, label %between
between:
  br label %b
b:
  %j = phi i8 [ 0, %between ], [ %j2, %b ]
  %j2 = add i8 %j, 100
  %goes2 = icmp ult i8 %j2, -6
  br i1 %goes2, label %b, label %end
end:
  ret void
}
