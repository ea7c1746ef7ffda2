; EDIT {"kind":"narrow","at":"i1"}
; SAYS computes in single precision the fmul i1
; DIFF -  %i1 = fmul double %i0, 3.000000e+00
; DIFF -  store double %i1, ptr %a1, align 8
; DIFF +  %e0.0 = fptrunc double %i0 to float
; DIFF +  %e0.1 = fmul float %e0.0, 3.000000e+00
; DIFF +  %e0.2 = fpext float %e0.1 to double
; DIFF +  store double %e0.2, ptr %a1, align 8
; PTX mul.rn.f32

target triple = "nvptx64-nvidia-cuda"
define ptx_kernel void @k(ptr %x, ptr %y, i32 %n, float %f) {
  %a = load double, ptr %x, align 8
  %b = fmul double %a, 3.0
  store double %b, ptr %y, align 8
  ret void
}
