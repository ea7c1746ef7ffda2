; The terms go to the two sums in turn.
; EDIT {"kind":"split-sum","at":"i2"}
; SAYS splits in two the sum of the PHI i2
; DIFF +  %e0.0 = phi float [ -0.000000e+00, %b0 ], [ %i6, %b1 ]
; DIFF -  %i6 = call float @llvm.fma.f32(float %i4, float %a3, float %i5)
; DIFF -  %i7 = fadd float %i4, %i6
; DIFF +  %i6 = call float @llvm.fma.f32(float %i4, float %a3, float %e0.0)
; DIFF +  %i7 = fadd float %i4, %i5
; DIFF +  %e0.1 = fadd float %i7, %i6
; DIFF -  store float %i7, ptr %a1, align 4
; DIFF +  store float %e0.1, ptr %a1, align 4

target triple = "nvptx64-nvidia-cuda"
declare float @llvm.fma.f32(float, float, float)
define ptx_kernel void @k(ptr %x, ptr %y, i32 %n, float %f) {
  br label %head
head:
  %i = phi i32 [ 0, %0 ], [ %j, %head ]
  %s = phi float [ %f, %0 ], [ %s3, %head ]
  %p = getelementptr float, ptr %x, i32 %i
  %a = load float, ptr %p, align 4
  %s1 = fadd float %s, %a
  %s2 = call float @llvm.fma.f32(float %a, float %f, float %s1)
  %s3 = fadd float %a, %s2
  %j = add i32 %i, 1
  %c = icmp slt i32 %j, %n
  br i1 %c, label %head, label %out
out:
  store float %s3, ptr %y, align 4
  ret void
}
