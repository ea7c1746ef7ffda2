#include <cuda_fp16.h>
// Mixed structs: a particle system with neighbours.
struct Box { float low[3]; short hits; };
struct Body {
    float4 pos;
    int id;
    half w;
    unsigned char k;
    bool alive;
    Box box[2];
    double mass;
};
struct Hit { unsigned char kind; float where; };

__global__ void advance(Body *bodies, const Hit *hits, Hit *found, int n, float dt) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Body me = bodies[i];
    me.pos.x += dt * __half2float(me.w) + hits[i].where;
    me.pos.y *= 0.5f;
    me.box[1].low[2] = me.pos.x;
    me.box[0].hits += hits[i].kind;
    me.id = me.id * 3 + 1;
    me.k ^= me.alive ? 5 : 2;
    me.mass += me.pos.z;
    bodies[i] = me;
    found[i].kind = (unsigned char)me.id;
    found[i].where = (float)me.mass;
}
int main() { Body *b; Hit *h, *f; int n = 100000; advance<<<(n + 255) / 256, 256>>>(b, h, f, n, 0.5f); }
