; Signed, then unsigned.
; EDIT {"kind":"no-wrap","at":"i0","option":1}
; EDIT {"kind":"no-wrap","at":"i0","option":2}
; SAYS asserts that the add i0 does not wrap (signed) [bold: the absence of wrapping is asserted]
; SAYS asserts that the add i0 does not wrap (unsigned) [bold: the absence of wrapping is asserted]
; DIFF -  %i0 = add i32 %a2, 5
; DIFF +  %i0 = add nuw nsw i32 %a2, 5

target triple = "nvptx64-nvidia-cuda"
define ptx_kernel void @k(ptr %x, ptr %y, i32 %n, float %f) {
  %a = add i32 %n, 5
  store i32 %a, ptr %y, align 4
  ret void
}
