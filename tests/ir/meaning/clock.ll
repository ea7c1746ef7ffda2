; A clock is read anew in each turn; the number of the thread is the same.
; EDIT {"kind":"hoist","at":"i3"}
; BOLD yes
; EDIT {"kind":"hoist","at":"i4"}
; BOLD no

target triple = "nvptx64-nvidia-cuda"

define ptx_kernel void @k(ptr %y, i32 %n) {
entry:
  br label %turn

turn:
  %j = phi i32 [ 0, %entry ], [ %j1, %turn ]
  %sum = phi i32 [ 0, %entry ], [ %sum2, %turn ]
  %now = call i32 @llvm.nvvm.read.ptx.sreg.clock()
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %sum1 = add i32 %sum, %now
  %sum2 = add i32 %sum1, %tid
  %j1 = add i32 %j, 1
  %ends = icmp eq i32 %j1, %n
  br i1 %ends, label %out, label %turn

out:
  store i32 %sum2, ptr %y, align 4
  ret void
}

declare i32 @llvm.nvvm.read.ptx.sreg.clock()
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
