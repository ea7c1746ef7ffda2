// Vectors of four floats, a guard at the end, no launch, no extern "C".
#include "vector_types.h"
__device__ float3 pull(float4 a, float4 b, float3 f) {
    float dx = b.x - a.x, dy = b.y - a.y, dz = b.z - a.z;
    float d2 = dx * dx + dy * dy + dz * dz + 1e-4f;
    float inv = rsqrt(d2);
    float s = b.w * inv * inv * inv;
    f.x += dx * s; f.y += dy * s; f.z += dz * s;
    return f;
}
__global__ void __launch_bounds__(128) forces(float3 *force, const float4 *bodies, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        float3 f = make_float3(0, 0, 0);
        for (int j = 0; j < count; j++)
            f = pull(bodies[i], bodies[j], f);
        force[i] = f;
    }
}
