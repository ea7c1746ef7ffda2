; EDIT {"kind":"unroll","at":"i7","option":4}
; SAYS unrolls 4 times the loop of the branch i7
; DIFF -  br i1 %i6, label %b1, label %b2
; DIFF +  br i1 %i6, label %b1, label %b2, !llvm.loop !0
; DIFF +!0 = distinct !{!0, !1}
; DIFF +!1 = !{!"llvm.loop.unroll.count", i32 4}

target triple = "nvptx64-nvidia-cuda"
define ptx_kernel void @k(ptr %x, ptr %y, i32 %n, float %f) {
  br label %head
head:
  %i = phi i32 [ 0, %0 ], [ %j, %head ]
  %k = mul i32 %n, 3
  %p = getelementptr i32, ptr %y, i32 %i
  store i32 %k, ptr %p, align 4
  %j = add i32 %i, 1
  %c = icmp slt i32 %j, %n
  br i1 %c, label %head, label %out
out:
  ret void
}
