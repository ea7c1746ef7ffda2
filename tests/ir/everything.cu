#include "evoke_cuda.h"
// Something for nearly every edit to work on, in one small kernel; tests read its lines.
extern "C" __global__ void everything(const float *x, float *y, double *z, int n, int flag) {
  __shared__ float tile[256];
  __shared__ volatile int seen;
  int t = threadIdx.x;
  const float *p = x + 4 * t;
  float a = p[0], b = p[1], c = p[2], d = p[3];
  tile[t] = a * b + c * d;
  __syncthreads();
  float s = 0;
  for (int i = 0; i < n; i++) {
    s += tile[(t + i) & 255] / x[i];
    if (t == 0) seen = i;
    __threadfence();
  }
  unsigned vote = __ballot_sync(0xffffffff, s > 0);
  if (__any_sync(0xffffffff, flag == 3)) s = sqrtf(s);
  float r;
  if (flag > n) r = s * 3 + a; else r = s * 5 + b;
  y[4*t] = r + vote; y[4*t+1] = b; y[4*t+2] = c; y[4*t+3] = d;
  __syncthreads();
  double q = z[t]; z[t] = q * q + 1.0;
  __threadfence_system();
}
