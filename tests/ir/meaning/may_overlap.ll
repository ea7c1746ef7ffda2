; Pointers without noalias may be one buffer, so that the store may change what is loaded.
; EDIT {"kind":"cache-policy","at":"i0","option":0}
; BOLD yes
; EDIT {"kind":"sink","at":"i0"}
; BOLD yes

target triple = "nvptx64-nvidia-cuda"
define ptx_kernel void @k(ptr %x, ptr %y, i32 %n, float %f) {
entry:
  %a = load float, ptr %x, align 4
  store float %f, ptr %y, align 4
  %c = icmp slt i32 %n, 5
  br i1 %c, label %then, label %done
then:
  %s = fadd float %a, %f
  store float %s, ptr %y, align 4
  br label %done
done:
  ret void
}
