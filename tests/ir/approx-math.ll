; A quotient, a reciprocal and a root, the last one flushing.
; EDIT {"kind":"approx-math","at":"i1","option":0}
; EDIT {"kind":"approx-math","at":"i2","option":0}
; EDIT {"kind":"approx-math","at":"i3","option":1}
; SAYS approximates the fdiv i1
; SAYS approximates the fdiv i2
; SAYS approximates the call of llvm.sqrt.f32 i3, flushing subnormals
; DIFF -  %i1 = fdiv float %i0, %a3
; DIFF -  %i2 = fdiv float 1.000000e+00, %i1
; DIFF -  %i3 = call float @llvm.sqrt.f32(float %i2)
; DIFF -  store float %i3, ptr %a1, align 4
; DIFF +  %e0.0 = call float @llvm.nvvm.div.approx.f(float %i0, float %a3)
; DIFF +  %e1.0 = call float @llvm.nvvm.rcp.approx.ftz.f(float %e0.0)
; DIFF +  %e2.0 = call float @llvm.nvvm.sqrt.approx.ftz.f(float %e1.0)
; DIFF +  store float %e2.0, ptr %a1, align 4
; PTX div.approx.f32
; PTX rcp.approx.ftz.f32
; PTX sqrt.approx.ftz.f32

target triple = "nvptx64-nvidia-cuda"
declare float @llvm.sqrt.f32(float)
define ptx_kernel void @k(ptr %x, ptr %y, i32 %n, float %f) {
  %a = load float, ptr %x, align 4
  %b = fdiv float %a, %f
  %c = fdiv float 1.0, %b
  %d = call float @llvm.sqrt.f32(float %c)
  store float %d, ptr %y, align 4
  ret void
}
