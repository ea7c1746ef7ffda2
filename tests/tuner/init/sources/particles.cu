// Buffers of structs, an enum, a class with host methods, a helper template.
#include <string>
#include <cassert>
enum Mode { FORWARD, BACKWARD };
struct Particle {
    float pos[3];
    float vel[3];
    float mass;
};
class Simulation {
  public:
    Simulation(int n) : count(n), label("run") { cudaMalloc(&data, n * sizeof(Particle)); }
    ~Simulation() { cudaFree(data); }
    void step(float dt);
  private:
    int count;
    std::string label;
    Particle *data;
};
template <typename T> __host__ __device__ inline T clamp(T v, T lo, T hi) { return v < lo ? lo : (v > hi ? hi : v); }

__global__ void advance(Particle *p, int count, float dt) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    assert(count > 0);
    for (int k = 0; k < 3; k++) {
        p[i].vel[k] = clamp(p[i].vel[k] - 9.81f * dt / (1.0f + fabs(p[i].mass)), -10.0f, 10.0f);
        p[i].pos[k] += p[i].vel[k] * dt;
    }
}
void Simulation::step(float dt) {
    int threads = 64;
    advance<<<(count + threads - 1) / threads, threads>>>(data, count, dt);
    if (cudaGetLastError() != cudaSuccess) throw std::string("launch");
}
