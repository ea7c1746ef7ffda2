; Two loads, then two stores.
; EDIT {"kind":"widen","at":"i0","option":2}
; EDIT {"kind":"widen","at":"i3","option":2}
; SAYS joins 2 adjacent accesses from the load i0 on into one [bold here: preserving where the alignment is known and nothing between the accesses writes]
; SAYS joins 2 adjacent accesses from the store i3 on into one [bold here: preserving where the alignment is known and nothing between the accesses writes]
; DIFF -  %i0 = load float, ptr %a0, align 4
; DIFF +  %e0.0 = load <2 x float>, ptr %a0, align 8
; DIFF +  %e0.1 = extractelement <2 x float> %e0.0, i32 0
; DIFF +  %e0.2 = extractelement <2 x float> %e0.0, i32 1
; DIFF -  %i2 = load float, ptr %i1, align 4
; DIFF -  store float %i2, ptr %a1, align 4
; DIFF -  store float %i0, ptr %i4, align 4
; DIFF +  %e1.0 = insertelement <2 x float> poison, float %e0.2, i32 0
; DIFF +  %e1.1 = insertelement <2 x float> %e1.0, float %e0.1, i32 1
; DIFF +  store <2 x float> %e1.1, ptr %a1, align 8
; PTX ld.global.v2.f32
; PTX st.global.v2.f32

target triple = "nvptx64-nvidia-cuda"
define ptx_kernel void @k(ptr %x, ptr %y, i32 %n, float %f) {
  %a = load float, ptr %x, align 4
  %p = getelementptr i8, ptr %x, i64 4
  %b = load float, ptr %p, align 4
  store float %b, ptr %y, align 4
  %q = getelementptr float, ptr %y, i64 1
  store float %a, ptr %q, align 4
  ret void
}
