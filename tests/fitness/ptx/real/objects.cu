/* Virtual calls, structs by value into and out of functions, templates and lambdas. */
#include "real.h"

struct shape {
    __device__ virtual int area(int s) const = 0;
    __device__ virtual int twice(int s) const { return 2 * area(s); }
    int tag;
};
struct square : shape {
    int k;
    __device__ square(int k) : k(k) { tag = 1; }
    __device__ __noinline__ int area(int s) const override { return s * s + k; }
};
struct triangle : shape {
    int k;
    __device__ triangle(int k) : k(k) { tag = 2; }
    __device__ __noinline__ int area(int s) const override { return s * s / 2 - k; }
    __device__ int twice(int s) const override { return area(s) + area(s + 1); }
};

__device__ __noinline__ int use(const shape *p, int s) {
    return p->twice(s) + p->tag;
}

KERNEL(object_virtual) {
    int i = threadIdx.x;
    square a(n);
    triangle b(in[i]);
    const shape *p = in[i] & 1 ? (const shape *)&a : (const shape *)&b;
    out[i] = use(p, i);
}

struct record {
    int a[5];
    float f;
    double d;
    char c[8];
};

__device__ __noinline__ record change(record r, int k) {
    r.a[k % 5] += k;
    r.f *= 2;
    r.d -= k;
    r.c[k % 3] = 'x';
    return r;
}
__device__ __noinline__ int total(const record r) {
    int s = 0;
    for (int i = 0; i < 5; i++)
        s += r.a[i];
    return s + (int)r.f + (int)r.d + r.c[0];
}

KERNEL(object_value) {
    int i = threadIdx.x;
    record r = {{1, 2, 3, 4, i}, 1.5f, 8.25, {'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'}};
    r = change(r, in[i]);
    r = change(r, i);
    out[i] = total(r);
}

template <int N, typename T> struct window {
    T v[N];
    __device__ void push(T x) {
        for (int k = N - 1; k > 0; k--)
            v[k] = v[k - 1];
        v[0] = x;
    }
    __device__ T sum() {
        T s = 0;
        for (int k = 0; k < N; k++)
            s += v[k];
        return s;
    }
};
template <typename F> __device__ int apply(F f, int n) {
    int s = 0;
    for (int k = 0; k < n; k++)
        s += f(k);
    return s;
}

extern "C" __global__ __launch_bounds__(128, 2) void object_template(int *out, const int *in,
                                                                     int n) {
    int i = threadIdx.x;
    window<5, long long> a = {};
    for (int k = 0; k < in[i] + 3; k++)
        a.push(k * i);
    window<3, float> b = {};
    b.push(1.5f * i);
    out[i] = (int)a.sum() + (int)b.sum() + apply([=](int k) { return k * in[i] + i; }, in[i]);
}
