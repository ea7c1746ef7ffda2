; Option 0: the read-only path.
; EDIT {"kind":"cache-policy","at":"i0","option":0}
; SAYS takes the read-only path (ld.global.nc) for the load i0 [bold here: preserving where nothing in the kernel can write to the memory, or where the read-only path is dropped]
; DIFF -  %i0 = load float, ptr %a0, align 4
; DIFF +  %i0 = load float, ptr %a0, align 4, !invariant.load !0
; DIFF +!0 = !{}
; PTX ld.global.nc.f32

target triple = "nvptx64-nvidia-cuda"
define ptx_kernel void @k(ptr %x, ptr %y, i32 %n, float %f) {
  %a = load float, ptr %x, align 4
  %b = fmul float %a, %f
  %c = fadd float %b, 2.0
  store float %c, ptr %y, align 4
  ret void
}
