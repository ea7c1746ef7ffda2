/* A step of Adam with decoupled weight decay, as the hand-tuned and the unfused starts of
 * ar_fused_adam and ar_then_adam take it. correction1 and correction2 are 1 - beta^step. */
#ifndef EVOKE_ADAM_H
#define EVOKE_ADAM_H

struct adam {
    float rate, beta1, beta2, epsilon, decay, correction1, correction2;
};

/* The new parameter of `p`, whose gradient is g. */
static __device__ __forceinline__ float adam_step(const adam &a, float g, float p, float &m,
                                                  float &v) {
    m = a.beta1 * m + (1.0f - a.beta1) * g;
    v = a.beta2 * v + (1.0f - a.beta2) * g * g;
    float step = (m / a.correction1) / (sqrtf(v / a.correction2) + a.epsilon);
    return p - a.rate * (step + a.decay * p);
}

static __device__ __forceinline__ void adam_step4(const adam &a, const float4 &g, float4 &p,
                                                  float4 &m, float4 &v) {
    p.x = adam_step(a, g.x, p.x, m.x, v.x);
    p.y = adam_step(a, g.y, p.y, m.y, v.y);
    p.z = adam_step(a, g.z, p.z, m.z, v.z);
    p.w = adam_step(a, g.w, p.w, m.w, v.w);
}

#endif
