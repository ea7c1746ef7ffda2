; EDIT {"kind":"hoist","at":"i2"}
; SAYS hoists out of its loop the mul i2
; DIFF +  %i2 = mul i32 %a2, 3
; DIFF -  %i2 = mul i32 %a2, 3

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
