/* Atomics to one address; grid m * n / 32, block 32 unless said otherwise. A part of kernels.cu. */

#define ELEMENT int i = blockIdx.x * 32 + threadIdx.x

/* A sum of all elements, behind an early return. */
extern "C" __global__ void tallied(PARAMETERS) {
    ELEMENT;
    if (i >= m * n)
        return;
    atomicAdd(y, x[i] * w[i % 5]);
}

/* A row a thread, block 8 x 4 x 2: in a loop and under conditions, and one that all threads add. */
extern "C" __global__ void tallied_rows(PARAMETERS) {
    int row = ((blockIdx.x * 2 + threadIdx.z) * 4 + threadIdx.y) * 8 + threadIdx.x;
    int last = m * n - 1;
    if (row < m) {
        for (int j = 0; j < n; j++) {
            if (x[row * n + j] > 3)
                atomicAdd((int *)y + last, j);
            else if (j % 2 == 1)
                atomicAdd((int *)y + last, 2);
        }
    }
    atomicAdd((int *)y, 1);
}

/* One address a block, block 64; blocks behind the m-th have none. Nothing may be written there. */
extern "C" __global__ void tallied_blocks(PARAMETERS) {
    if (blockIdx.x < m)
        for (int j = threadIdx.x; j < n; j += 64)
            atomicAdd(y + blockIdx.x * n, x[blockIdx.x * n + j]);
}

/* The greatest element, and the least of its opposites. */
extern "C" __global__ void tallied_most(PARAMETERS) {
    ELEMENT;
    if (i < m * n)
        atomicMax((int *)y, (int)x[i]);
}
extern "C" __global__ void tallied_least(PARAMETERS) {
    ELEMENT;
    if (i < m * n)
        atomicMin((int *)y, 0x10000000 - (int)x[i]);
}

/* Each thread has an address of its own, as in a histogram. */
extern "C" __global__ void spread(PARAMETERS) {
    ELEMENT;
    if (i < m * n)
        atomicAdd(y + (int)x[i] % (m * n), 1.0f);
}

/* Addresses all over the output, behind a test that reads memory. */
extern "C" __global__ void spread_far(PARAMETERS) {
    ELEMENT;
    if (i < m * n) {
        float v = x[i];
        if (v > 2)
            atomicAdd(y + i * 5 % (m * n), v);
    }
}

/* A row a thread, in a loop, at two places; block 8 x 4 x 2. */
extern "C" __global__ void spread_rows(PARAMETERS) {
    int row = ((blockIdx.x * 2 + threadIdx.z) * 4 + threadIdx.y) * 8 + threadIdx.x;
    if (row >= m)
        return;
    for (int j = 0; j < n; j++) {
        atomicAdd((int *)y + (int)x[row * n + j] % (m * n), j);
        if (j % 2 == 1)
            atomicAdd((int *)y + (m * n - 1 - j), 2);
    }
}

/* The greatest element of a column, of which there may be fewer than a copy has elements. */
extern "C" __global__ void spread_most(PARAMETERS) {
    ELEMENT;
    if (i < m * n)
        atomicMax((int *)y + i % n, (int)x[i] - 3);
}

/* Atomics under conditions that the threads share: behind one, beside one, and before one. */
extern "C" __global__ void spread_then(PARAMETERS) {
    ELEMENT;
    int v = i < m * n ? (int)x[i] : 0;
    atomicAdd((int *)y + v % (m * n), 1);
    if (n == 33)
        atomicAdd((int *)y + (m * n - 1 - v % (m * n)), 2);
}
extern "C" __global__ void spread_beside(PARAMETERS) {
    ELEMENT;
    int v = i < m * n ? (int)x[i] : 0;
    if (n == 33)
        atomicAdd((int *)y + v % (m * n), 1);
    else if (n == 8)
        atomicAdd((int *)y + v % (m * n), 3);
}
extern "C" __global__ void spread_before(PARAMETERS) {
    ELEMENT;
    int v = i < m * n ? (int)x[i] : 0;
    if (n == 33)
        atomicAdd((int *)y + v % (m * n), 1);
    if (i < m * n)
        atomicAdd((int *)y + (m * n - 1 - v % (m * n)), 2);
}

/* What is read between the atomics is the block's own. */
extern "C" __global__ void spread_shared(PARAMETERS) {
    __shared__ float part[32];
    ELEMENT;
    part[threadIdx.x] = i < m * n ? x[i] : 0;
    __syncthreads();
    for (int j = 0; j < n; j++)
        atomicAdd(y + j, part[(threadIdx.x + j) % 32]);
}

/* A thread of a later part of the kernel tells others how many blocks are done. */
extern "C" __global__ void spread_told(PARAMETERS) {
    ELEMENT;
    if (i < m * n)
        atomicAdd((int *)y + i % n, 1);
    __syncthreads();
    if (n > 2 && threadIdx.x == 0) {
        __threadfence();
        atomicAdd((int *)y + (m * n - 1), 100);
    }
}

/* A thread reads its own element later; the blocks do not share any. */
extern "C" __global__ void spread_reads(PARAMETERS) {
    ELEMENT;
    if (i < m * n)
        atomicAdd((int *)y + i, 1);
    if (n > 5 && i < m * n)
        y[i] = (float)((int *)y)[i];
}

/* A thread waits for what another one of its warp's neighbours adds. */
extern "C" __global__ void spread_awaits(PARAMETERS) {
    ELEMENT;
    if (i < m * n) {
        float seen = *(volatile float *)(y + i);
        atomicAdd(y + i, seen > 100 ? 0.0f : 1.0f);
    }
}

/* A fence in assembly before the atomic. */
extern "C" __global__ void spread_fenced(PARAMETERS) {
    ELEMENT;
    asm volatile("membar.gl;" ::: "memory");
    if (i < m * n)
        atomicAdd(y + i, 1.0f);
}

/* Atomics of two kinds. */
extern "C" __global__ void spread_kinds(PARAMETERS) {
    ELEMENT;
    if (i < m * n) {
        atomicAdd((int *)y + i, 1);
        atomicMax((int *)y + i, (int)x[i]);
    }
}

/* The value is used. */
extern "C" __global__ void numbered(PARAMETERS) {
    ELEMENT;
    if (i < m * n)
        y[i] = (float)(atomicAdd((int *)y, 0) * 0);
}

/* The last block looks at what all have added. */
extern "C" __global__ void fenced(PARAMETERS) {
    ELEMENT;
    if (i < m * n)
        atomicAdd(y, x[i]);
    __threadfence();
    if (i < m * n && i > 0)
        atomicAdd(y + i, 1.0f);
}

/* A fence before the atomic, which tells that the element is written; block 32. */
extern "C" __global__ void released(PARAMETERS) {
    ELEMENT;
    if (i > 0 && i < m * n)
        y[i] = x[i];
    __threadfence();
    atomicAdd(y, 1.0f);
}

/* The first lane of a warp, found by assembly and by its mask, adds what the warp has summed up. */
extern "C" __global__ void by_lane(PARAMETERS) {
    ELEMENT;
    float sum = i < m * n ? x[i] : 0;
    for (int d = 16; d > 0; d /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, d);
    int lane;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    if (lane == 0)
        atomicAdd(y, sum);
}
extern "C" __global__ void by_mask(PARAMETERS) {
    ELEMENT;
    float sum = i < m * n ? x[i] : 0;
    for (int d = 16; d > 0; d /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, d);
    if (__nvvm_read_ptx_sreg_lanemask_lt() == 0)
        atomicAdd(y, sum);
}

/* The kernel reads back what it adds to. */
extern "C" __global__ void read_back(PARAMETERS) {
    ELEMENT;
    if (i < m * n)
        atomicAdd(y, x[i]);
    if (y[0] > 1e9f)
        y[0] = 0;
}

/* Threads of a block that ask each other whether the 37th of them has a large element; block 64. */
extern "C" __global__ void asked(PARAMETERS) {
    int i = blockIdx.x * 64 + threadIdx.x;
    bool any = __syncthreads_or(threadIdx.x == 37 && i < m * n && x[i] > 3);
    if (i < m * n)
        y[i] = any ? x[i] : -1;
}
