; Four loads of a row whose length is a multiple of four: the row and the place in it are one sum.
; EDIT {"kind":"widen","at":"i8","option":4}
; PTX ld.global.v4.f32

target triple = "nvptx64-nvidia-cuda"
define ptx_kernel void @k(ptr align 16 %x, ptr %y, i32 %n, i32 %i) {
  %m = and i32 %n, -4
  %row = mul nsw i32 %m, %i
  br label %l
l:
  %k = phi i32 [ 0, %0 ], [ %next, %l ]
  %s = phi float [ 0.0, %0 ], [ %s3, %l ]
  %a0 = add nsw i32 %k, %row
  %e0 = sext i32 %a0 to i64
  %p0 = getelementptr inbounds float, ptr %x, i64 %e0
  %v0 = load float, ptr %p0, align 4
  %k1 = or disjoint i32 %k, 1
  %a1 = add nsw i32 %k1, %row
  %e1 = sext i32 %a1 to i64
  %p1 = getelementptr inbounds float, ptr %x, i64 %e1
  %v1 = load float, ptr %p1, align 4
  %k2 = or disjoint i32 %k, 2
  %a2 = add nsw i32 %k2, %row
  %e2 = sext i32 %a2 to i64
  %p2 = getelementptr inbounds float, ptr %x, i64 %e2
  %v2 = load float, ptr %p2, align 4
  %k3 = or disjoint i32 %k, 3
  %a3 = add nsw i32 %k3, %row
  %e3 = sext i32 %a3 to i64
  %p3 = getelementptr inbounds float, ptr %x, i64 %e3
  %v3 = load float, ptr %p3, align 4
  %s0 = fadd float %s, %v0
  %s1 = fadd float %s0, %v1
  %s2 = fadd float %s1, %v2
  %s3 = fadd float %s2, %v3
  %next = add nuw nsw i32 %k, 4
  %c = icmp slt i32 %next, %m
  br i1 %c, label %l, label %e
e:
  store float %s3, ptr %y, align 4
  ret void
}
