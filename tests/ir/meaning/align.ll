; An alignment is proved by that of the argument (x is granted 16 bytes, y 4) and by the zero bits of
; the indices, those of a PHI among them.
; EDIT {"kind":"align","at":"i4","option":16}
; BOLD no
; EDIT {"kind":"align","at":"i6","option":8}
; BOLD no
; EDIT {"kind":"align","at":"i6","option":16}
; BOLD yes
; EDIT {"kind":"align","at":"i8","option":8}
; BOLD yes
; EDIT {"kind":"align","at":"i10","option":8}
; BOLD yes
; EDIT {"kind":"align","at":"i15","option":16}
; BOLD no
; EDIT {"kind":"align","at":"i20","option":16}
; BOLD no
; EDIT {"kind":"align","at":"i20","option":8}
; BOLD no
; EDIT {"kind":"align","at":"i24","option":8}
; BOLD yes

target triple = "nvptx64-nvidia-cuda"
@tile = internal addrspace(3) global [64 x float] undef, align 4
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
define ptx_kernel void @k(ptr noalias align 16 %x, ptr noalias align 4 %y, i32 %n) {
entry:
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %four = shl i32 %t, 2
  %at = sext i32 %four to i64
  %p = getelementptr float, ptr %x, i64 %at
  %a = load float, ptr %p, align 4
  %p2 = getelementptr i8, ptr %p, i64 8
  %b = load float, ptr %p2, align 4
  %q = getelementptr float, ptr %y, i64 %at
  %c = load float, ptr %q, align 4
  %r = getelementptr float, ptr %x, i32 %t
  %d = load float, ptr %r, align 4
  %s = add i32 %four, 0
  %m = and i32 %n, -4
  %o = sub i32 %four, %m
  %u = getelementptr float, ptr addrspace(3) @tile, i32 %o
  %e = load float, ptr addrspace(3) %u, align 4
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %j = phi i32 [ 2, %entry ], [ %after, %loop ]
  %v = getelementptr float, ptr %x, i32 %i
  %f = load float, ptr %v, align 4
  %next = add i32 %i, 4
  %after = add i32 %j, 3
  %w = getelementptr float, ptr %x, i32 %j
  %g = load float, ptr %w, align 4
  %sum = fadd float %f, %g
  %sum1 = fadd float %sum, %a
  %sum2 = fadd float %sum1, %b
  %sum3 = fadd float %sum2, %c
  %sum4 = fadd float %sum3, %d
  %sum5 = fadd float %sum4, %e
  store float %sum5, ptr %y, align 4
  %done = icmp sgt i32 %next, %n
  br i1 %done, label %end, label %loop
end:
  ret void
}
