/* A step of gradient descent with momentum and weight decay, as the hand-tuned and the unfused
 * starts of ar_fused_sgd and ar_then_sgd take it. */
#ifndef EVOKE_SGD_H
#define EVOKE_SGD_H

struct sgd {
    float rate, momentum, decay;
};

/* The new parameter of `p`, whose gradient is g. */
static __device__ __forceinline__ float sgd_step(const sgd &a, float g, float p, float &v) {
    v = a.momentum * v + (g + a.decay * p);
    return p - a.rate * v;
}

static __device__ __forceinline__ void sgd_step4(const sgd &a, const float4 &g, float4 &p,
                                                 float4 &v) {
    p.x = sgd_step(a, g.x, p.x, v.x);
    p.y = sgd_step(a, g.y, p.y, v.y);
    p.z = sgd_step(a, g.z, p.z, v.z);
    p.w = sgd_step(a, g.w, p.w, v.w);
}

#endif
