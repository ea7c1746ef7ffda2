/* Kernels whose loops have loops inside, a row a thread; grid m, block 4. kernels.cu includes this
 * file, and has PARAMETERS. */

/* The loop inside most of them. */
static __device__ float dot(const float *x, const float *w, int n) {
    float sum = 0;
    for (int k = 0; k < n; k++)
        sum += x[k] * w[k];
    return sum;
}

/* The nearest row of w: each turn hands the least distance and its place on. */
extern "C" __global__ void nearest(PARAMETERS) {
    int i = blockIdx.x * 4 + threadIdx.x;
    if (i >= m)
        return;
    float least = 1e9f;
    int place = 0;
    for (int j = 0; j < n; j++) {
        float sum = 0;
        for (int k = 0; k < n; k++)
            sum += fabsf(x[i * n + k] - w[j * n + k]);
        if (sum < least) {
            least = sum;
            place = j;
        }
    }
    y[i * n] = least * 64 + (float)place;
}

/* Each turn stores, and has two loops one after the other, and one inside the other. */
extern "C" __global__ void filtered(PARAMETERS) {
    int i = blockIdx.x * 4 + threadIdx.x;
    if (i >= m)
        return;
    for (int j = 0; j < n; j++) {
        float sum = w[j], most = 0;
        for (int k = 0; k < n; k++)
            sum += x[i * n + k] * w[k * n + j];
        for (int k = 0; k < n; k += 2)
            for (int l = 0; l < 2; l++)
                most = fmaxf(most, x[i * n + k] - w[k + l]);
        y[i * n + j] = sum > 3 ? sum + most : most;
    }
}

/* What goes on from turn to turn is scaled anew in each, as in an online softmax; a second number
 * counts by another step. */
extern "C" __global__ void rescaled(PARAMETERS) {
    int i = blockIdx.x * 4 + threadIdx.x;
    if (i >= m)
        return;
    float all = 0, most = -1;
    int back = 3 * n;
    for (int j = 0; j < n; j++, back -= 3) {
        float sum = dot(x + i * n, w + j * n, n);
        float next = fmaxf(most, sum);
        all = (most < next ? all * 0.5f : all) + (float)(back & 7);
        most = next;
    }
    y[i * n] = all + most;
}

/* The loop inside makes more turns each time. */
extern "C" __global__ void triangle(PARAMETERS) {
    int i = blockIdx.x * 4 + threadIdx.x;
    if (i >= m)
        return;
    for (int j = 0; j < n; j++) {
        float sum = 0;
        for (int k = 0; k <= j; k++)
            sum += x[i * n + k];
        y[i * n + j] = sum;
    }
}

/* One sum goes through all loops. */
extern "C" __global__ void one_sum(PARAMETERS) {
    int i = blockIdx.x * 4 + threadIdx.x;
    if (i >= m)
        return;
    float sum = 0;
    for (int j = 0; j < n; j++)
        for (int k = 0; k < n; k++)
            sum += x[i * n + k] * w[j * n + k];
    y[i * n] = sum;
}

/* A turn takes what the turn before the last handed on. */
extern "C" __global__ void before_last(PARAMETERS) {
    int i = blockIdx.x * 4 + threadIdx.x;
    if (i >= m)
        return;
    float last = 0, before = 0;
    for (int j = 0; j < n; j++) {
        float sum = before;
        for (int k = 0; k < n; k++)
            sum = fmaxf(sum, x[i * n + k] - w[j * n + k]);
        y[i * n + j] = sum;
        before = last;
        last = sum;
    }
}

/* A turn takes the last one's value behind the loop inside, and then makes its own. */
extern "C" __global__ void differences(PARAMETERS) {
    int i = blockIdx.x * 4 + threadIdx.x;
    if (i >= m)
        return;
    float last = 5;
    for (int j = 0; j < n; j++) {
        float sum = dot(x + i * n, w + j * n, n);
        y[i * n + j] = sum - last;
        last = sum;
    }
}

/* A store under a condition that depends on the turn. */
extern "C" __global__ void some_stored(PARAMETERS) {
    int i = blockIdx.x * 4 + threadIdx.x;
    if (i >= m)
        return;
    for (int j = 0; j < n; j++) {
        float sum = dot(x + i * n, w + j * n, n);
        if (sum > 9)
            y[i * n + j] = sum;
    }
}

/* The loop reads what it stores. */
extern "C" __global__ void accumulated(PARAMETERS) {
    int i = blockIdx.x * 4 + threadIdx.x;
    if (i >= m)
        return;
    for (int j = 0; j < n; j++)
        for (int k = 0; k < n; k++)
            y[i * n + k] += x[i * n + j] * w[j * n + k];
}

/* The threads of a block wait for each other in each turn. */
extern "C" __global__ void waited(PARAMETERS) {
    __shared__ float part[4];
    int i = blockIdx.x * 4 + threadIdx.x;
    for (int j = 0; j < n; j++) {
        float sum = 0;
        for (int k = 0; k < n; k++)
            sum += w[j * n + k];
        part[threadIdx.x] = sum;
        __syncthreads();
        if (i < m)
            y[i * n + j] = part[3 - threadIdx.x];
        __syncthreads();
    }
}

/* The atomics of a turn, behind its loop. */
extern "C" __global__ void drained(PARAMETERS) {
    int i = blockIdx.x * 4 + threadIdx.x;
    if (i >= m)
        return;
    for (int j = 0; j < n; j++) {
        float sum = dot(x + i * n, w + j * n, n);
        atomicAdd(&y[i * n + j], sum);
    }
}

/* Each turn stores twice, and a later turn stores over what an earlier one did. */
extern "C" __global__ void overlapped(PARAMETERS) {
    int i = blockIdx.x * 4 + threadIdx.x;
    if (i >= m)
        return;
    for (int j = 1; j < n; j++) {
        float sum = dot(x + i * n, w + j * n, n);
        y[i * n + j - 1] = sum;
        y[i * n + j] = sum + 1;
    }
}

/* The same with a loop between the stores. */
extern "C" __global__ void overlapped_late(PARAMETERS) {
    int i = blockIdx.x * 4 + threadIdx.x;
    if (i >= m)
        return;
    for (int j = 1; j < n; j++) {
        y[i * n + j - 1] = w[j];
        float sum = dot(x + i * n, w + j * n, n);
        y[i * n + j] = sum;
    }
}

/* The loop inside stores, to places that each turn moves on. */
extern "C" __global__ void moved_on(PARAMETERS) {
    int i = blockIdx.x * 4 + threadIdx.x;
    if (i >= m)
        return;
    for (int j = 0; j < n; j++)
        for (int k = 0; k < 2; k++)
            if (j + k < n)
                y[i * n + j + k] = x[i * n + j] + (float)k;
}

/* The loop inside stores to the same places in each turn. */
extern "C" __global__ void stored_over(PARAMETERS) {
    int i = blockIdx.x * 4 + threadIdx.x;
    if (i >= m)
        return;
    for (int j = 0; j < n; j++)
        for (int k = 0; k < n; k++)
            y[i * n + k] = x[i * n + j] + w[j * n + k];
}

/* A local array that each turn fills and reads. */
extern "C" __global__ void local_rows(PARAMETERS) {
    int i = blockIdx.x * 4 + threadIdx.x;
    if (i >= m)
        return;
    float part[8];
    for (int j = 0; j < n; j++) {
        for (int k = 0; k < 8; k++)
            part[(k * 3 + n) & 7] = w[j + k];
        float sum = 0;
        for (int k = 0; k < n; k++)
            sum += part[k & 7] * x[i * n + k];
        y[i * n + j] = sum;
    }
}

/* The stores of a turn are as many elements apart as an argument says, and under a test of what
 * the turns hand on. */
extern "C" __global__ void overlapped_by(PARAMETERS) {
    int i = blockIdx.x * 4 + threadIdx.x;
    if (i >= m)
        return;
    float most = 0;
    for (int j = m; j < n; j++) {
        float sum = dot(x + i * n, w + j * n, n);
        y[i * n + j - m] = w[j];
        if (sum > most) {
            y[i * n + j] = sum;
            most = sum - 1;
        } else {
            y[i * n + j] = most;
        }
    }
}

/* A ring: the last element comes first again. */
extern "C" __global__ void turned_rows(PARAMETERS) {
    int i = blockIdx.x * 4 + threadIdx.x;
    if (i >= m)
        return;
    for (int j = 0; j < n; j++) {
        float sum = dot(x + i * n, w + j * n, n);
        y[i * n + j] = w[j];
        y[i * n + (j + 1) % n] = sum;
    }
}

/* The store goes to one of two arguments, of which one is loaded from. */
extern "C" __global__ void chosen_store(PARAMETERS) {
    int i = blockIdx.x * 4 + threadIdx.x;
    if (i >= m)
        return;
    float none[2];
    float *to = n > 0 ? y + i * n : none;
    for (int j = 0; j < n; j++) {
        float sum = 0;
        for (int k = 0; k < n; k++)
            sum += y[i * n + k] * w[j * n + k];
        to[j] = sum * 0.125f + 1;
    }
}

/* The loop inside runs for some sizes alone, and the others keep what an earlier turn handed on. */
extern "C" __global__ void kept(PARAMETERS) {
    int i = blockIdx.x * 4 + threadIdx.x;
    if (i >= m)
        return;
    float last = 1;
    for (int j = 0; j < n; j++) {
        if (m > 8)
            last = dot(x + i * n, w + j * n, n);
        y[i * n + j] = last;
    }
}
