/* Forces between particles in boxes: a block has a box, and its particles meet those of the boxes in
 * the box's list of neighbours. A particle is a place and a charge. */
#define PARTICLES 32 /* of a box */

struct Law {
    float decay;    /* of the exponential */
    int neighbours; /* of a box */
};

extern "C" __global__ void boxes(const float4 *particles, const int *neighbour, float4 *forces,
                                 Law law) {
    __shared__ float4 others[PARTICLES];
    int own = blockIdx.x * PARTICLES + threadIdx.x;
    float4 me = particles[own];
    float4 force = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    for (int k = 0; k < law.neighbours; k++) {
        int box = neighbour[blockIdx.x * law.neighbours + k];
        others[threadIdx.x] = particles[box * PARTICLES + threadIdx.x];
        __syncthreads();
        for (int i = 0; i < PARTICLES; i++) {
            float dx = me.x - others[i].x, dy = me.y - others[i].y, dz = me.z - others[i].z;
            float strength = others[i].w * expf(-law.decay * (dx * dx + dy * dy + dz * dz));
            force.x += strength * dx;
            force.y += strength * dy;
            force.z += strength * dz;
            force.w += strength;
        }
        __syncthreads();
    }
    forces[own] = force;
}
