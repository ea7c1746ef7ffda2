/* Kernels for edits that give threads other places and loops another one, for bounds with products,
 * and kernels whose threads end by what they read. kernels.cu includes this file, and has
 * PARAMETERS. */

/* No test, on a grid that no argument tells. */
extern "C" __global__ void unnamed(PARAMETERS) {
    for (int j = threadIdx.x; j < n; j += 32)
        y[blockIdx.x * n + j] = x[blockIdx.x * n + j] + 1;
}

/* Three axes; the third one's four places add up what they find. */
extern "C" __global__ void volume(PARAMETERS) {
    int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
    int k = blockIdx.z * blockDim.z + threadIdx.z;
    if (j < n && i < m && k < 4)
        atomicAdd(&y[i * n + j], x[i * n + j] * (float)(k + 1));
}

/* A product below the diagonal alone. */
extern "C" __global__ void diagonal(PARAMETERS) {
    int j = blockIdx.x * 8 + threadIdx.x, i = blockIdx.y * 8 + threadIdx.y;
    if (i >= m || j >= n)
        return;
    float value = -1;
    if (j <= i) {
        float sum = 0;
        for (int k = 0; k < n; k++)
            sum += x[i * n + k] * w[k * n + j];
        value = sum + 2;
    }
    y[i * n + j] = value;
}

/* The loop stands on the other side, behind values that only this side has. */
extern "C" __global__ void otherwise(PARAMETERS) {
    int j = blockIdx.x * 8 + threadIdx.x, i = blockIdx.y * 8 + threadIdx.y;
    if (i >= m || j >= n)
        return;
    float value;
    if (j > i) {
        value = x[i * n + j];
    } else {
        float scale = x[i * n] + 1;
        value = w[j];
        for (int k = 0; k < n; k++)
            value += x[i * n + k] * scale;
        value += scale;
    }
    y[i * n + j] = value;
}

/* The condition stands in a loop, and the other side goes on with the next turn. */
extern "C" __global__ void blocked(PARAMETERS) {
    int j = blockIdx.x * 8 + threadIdx.x, i = blockIdx.y * 8 + threadIdx.y;
    if (i >= m || j >= n)
        return;
    float sum = 0;
    for (int first = 0; first < n; first += 4) {
        if (first > j)
            continue;
        int last = first + 4 < n ? first + 4 : n;
        for (int k = first; k < last; k++)
            sum += x[i * n + k] * w[k];
    }
    y[i * n + j] = sum;
}

/* Two conditions, with work between them. */
extern "C" __global__ void nested_tests(PARAMETERS) {
    int j = blockIdx.x * 8 + threadIdx.x, i = blockIdx.y * 8 + threadIdx.y;
    if (i >= m || j >= n)
        return;
    float sum = 1;
    if (j <= i) {
        float scale = x[i * n + j];
        if (scale > 2) {
            for (int k = 0; k < n; k++)
                sum += x[i * n + k] * scale;
        }
        sum += scale;
    }
    y[i * n + j] = sum;
}

extern "C" __global__ void writes_under(PARAMETERS) {
    int j = blockIdx.x * 8 + threadIdx.x, i = blockIdx.y * 8 + threadIdx.y;
    if (i >= m || j >= n)
        return;
    float sum = 1;
    if (j <= i) {
        y[i * n + j] = 3;
        for (int k = 0; k < n; k++)
            sum += x[i * n + k];
    }
    y[i * n + j] += sum;
}

extern "C" __global__ void divides_under(PARAMETERS) {
    int j = blockIdx.x * 8 + threadIdx.x, i = blockIdx.y * 8 + threadIdx.y;
    if (i >= m || j >= n)
        return;
    float sum = 1;
    if (j > 0) {
        for (int k = 0; k < n; k++)
            sum += x[i * n + k % j];
    }
    y[i * n + j] = sum;
}

/* The steps from a number down to 1; for 0 there is no end. */
__device__ __noinline__ __attribute__((const)) int halvings(int number) {
    int steps = 0;
    for (; number != 1; number >>= 1)
        steps++;
    return steps;
}

/* A function runs for some numbers alone, under the loop's condition. */
extern "C" __global__ void calls_under(PARAMETERS) {
    int j = blockIdx.x * 8 + threadIdx.x, i = blockIdx.y * 8 + threadIdx.y;
    if (i >= m || j >= n)
        return;
    float sum = 1;
    if (j > 0) {
        int steps = halvings(j);
        for (int k = 0; k < n; k++)
            sum += (float)steps * x[i * n + k];
    }
    y[i * n + j] = sum;
}

/* What is stored by assembly goes elsewhere: nothing else points where x does. */
extern "C" __global__ void streamed(const float *__restrict__ x, const float *w, float *y, int m,
                                    int n) {
    int j = blockIdx.x * 8 + threadIdx.x, i = blockIdx.y * 8 + threadIdx.y;
    if (i >= m || j >= n)
        return;
    float sum = 0;
    for (int k = 0; k < n; k++)
        sum += x[i * n + k];
    asm volatile("st.global.cs.f32 [%0], %1;" ::"l"(y + i * n + j), "f"(sum + w[0]) : "memory");
}

/* Four tests around all, and neighbours to load. */
extern "C" __global__ void framed(PARAMETERS) {
    int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
    if (j > 0 && j < n - 1 && i > 0 && i < m - 1) {
        int at = i * n + j;
        y[at] = 2 * x[at] + x[at - 1] + x[at + 1] + x[at - n] + x[at + n];
    }
}

/* One test for both axes: it does not tell where a row ends. */
extern "C" __global__ void lined(PARAMETERS) {
    int at = (blockIdx.y * 4 + threadIdx.y) * n + blockIdx.x + threadIdx.x;
    if (at < m * n)
        y[at] += x[at] + 1;
}

/* The index has 64 bits. */
extern "C" __global__ void long_index(PARAMETERS) {
    long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (at < (long long)m * n)
        y[at] = x[at] + (float)(blockIdx.x % 2);
}

/* What is assumed holds under the condition alone. */
extern "C" __global__ void assumed(PARAMETERS) {
    int at = blockIdx.x * 32 + threadIdx.x;
    if (at >= m * n)
        return;
    float sum = 0;
    if (x[at] > 5) {
        __builtin_assume(n > 3);
        for (int k = 0; k < n; k++)
            sum += w[k];
    }
    y[at] = n > 3 ? sum : sum + 5;
}

/* A loop inside that ends where the condition holds alone. */
extern "C" __global__ void spins(PARAMETERS) {
    int at = blockIdx.x * 32 + threadIdx.x;
    if (at >= m * n)
        return;
    float sum = 0;
    if (x[at] > 0) {
        for (int k = 0; k < 4; k++) {
            int steps = (int)x[at];
            while (steps != 0) {
                sum += w[k];
                steps--;
            }
        }
    }
    y[at] = sum;
}

/* Taps that are an argument apart; block 32. */
extern "C" __global__ void dilated(PARAMETERS) {
    int i = blockIdx.x * 32 + threadIdx.x;
    if (i >= m * n)
        return;
    float sum = 0;
    for (int k = 0; k < 3; k++) {
        int at = i + (k - 1) * n;
        if (at >= 0 && at < m * n)
            sum += x[at] * w[k];
    }
    y[i] = sum;
}

/* A row a thread, with a tap before and one behind its first elements; block 32. */
extern "C" __global__ void stridden(PARAMETERS) {
    int i = blockIdx.x * 32 + threadIdx.x;
    if (i >= m)
        return;
    float sum = 0;
    for (int k = 0; k < 4; k++) {
        int at = i * n + 2 * k - 3;
        if (at >= 0 && at < m * n)
            sum += x[at] * w[k];
    }
    y[i * n] = sum;
}

/* From the end to the beginning, by steps that are negative where n is greater than 5; block 32. */
extern "C" __global__ void backwards(PARAMETERS) {
    int i = blockIdx.x * 32 + threadIdx.x;
    if (i >= m * n)
        return;
    float sum = 0;
    for (int k = 0; k < 3; k++) {
        int at = m * n - 1 - i - k * (5 - n);
        if (at >= 0 && at < m * n)
            sum += x[at] * w[k];
    }
    y[i] = sum;
}

/* A row a thread, but for rows that their first element sends home; block 32. */
extern "C" __global__ void home_by_memory(PARAMETERS) {
    int i = blockIdx.x * 32 + threadIdx.x;
    if (i >= m || x[i * n] > 5)
        return;
    float sum = 0;
    for (int k = 0; k < n; k++)
        sum += x[i * n + k] * w[k];
    y[i * n] = sum;
}

/* The same by a block's own element, with threads that work together behind; block 32. */
extern "C" __global__ void home_together(PARAMETERS) {
    __shared__ float part[32];
    int i = blockIdx.x * 32 + threadIdx.x;
    if (x[blockIdx.x] > 5)
        return;
    part[threadIdx.x] = i < m * n ? x[i] : 0;
    __syncthreads();
    if (i < m * n)
        y[i] = part[31 - threadIdx.x];
}
