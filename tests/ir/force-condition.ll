; EDIT {"kind":"force-condition","at":"i1","option":1}
; SAYS makes the condition of the branch i1 always true [bold: the other arm is no longer taken]
; DIFF -  br i1 %i0, label %b1, label %b2
; DIFF +  br i1 true, label %b1, label %b2

target triple = "nvptx64-nvidia-cuda"
define ptx_kernel void @k(ptr %x, ptr %y, i32 %n, float %f) {
  %c = icmp slt i32 %n, 5
  br i1 %c, label %in, label %out
in:
  store float %f, ptr %y, align 4
  br label %out
out:
  ret void
}
