; Adjacent accesses are joined without a risk where the address is proved to be aligned and nothing
; between them may reach their memory.
; EDIT {"kind":"widen","at":"i4","option":2}
; BOLD no
; EDIT {"kind":"widen","at":"i9","option":2}
; BOLD no
; EDIT {"kind":"widen","at":"i12","option":2}
; BOLD yes
; EDIT {"kind":"widen","at":"i16","option":2}
; BOLD yes

target triple = "nvptx64-nvidia-cuda"
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare void @llvm.nvvm.barrier0()
define ptx_kernel void @k(ptr noalias align 16 %x, ptr noalias align 16 %y, i32 %n) {
entry:
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %two = shl i32 %t, 1
  %p = getelementptr float, ptr %x, i32 %two
  %p1 = getelementptr i8, ptr %p, i64 4
  %a = load float, ptr %p, align 4
  store float %a, ptr %y, align 4
  %b = load float, ptr %p1, align 4
  %q = getelementptr float, ptr %y, i32 %two
  %q1 = getelementptr i8, ptr %q, i64 4
  store float %b, ptr %q, align 4
  store float %a, ptr %q1, align 4
  %r = getelementptr i8, ptr %q, i64 8
  store float %b, ptr %r, align 4
  call void @llvm.nvvm.barrier0()
  %r1 = getelementptr i8, ptr %q, i64 12
  store float %a, ptr %r1, align 4
  %c = load float, ptr %p1, align 4
  %p2 = getelementptr i8, ptr %p, i64 8
  %d = load float, ptr %p2, align 4
  %s = fadd float %c, %d
  %z = getelementptr i8, ptr %y, i64 64
  store float %s, ptr %z, align 4
  ret void
}
