; EDIT {"kind":"sink","at":"i1"}
; SAYS sinks to where it is used the load i1 [bold here: preserving for pure instructions, and for loads of memory that the kernel cannot write]
; DIFF -  %i1 = load float, ptr %a0, align 4
; DIFF +  %i1 = load float, ptr %a0, align 4

target triple = "nvptx64-nvidia-cuda"
define ptx_kernel void @k(ptr %x, ptr %y, i32 %n, float %f) {
  %c = icmp slt i32 %n, 5
  %b = load float, ptr %x, align 4
  br i1 %c, label %yes, label %no
yes:
  store float %b, ptr %y, align 4
  br label %no
no:
  ret void
}
