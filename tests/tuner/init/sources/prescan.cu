// exclusive prefix sum in a block, shared memory double buffered
#define N 512
__global__ void prescan(int *g_odata, const int *g_idata, int n) {
    extern __shared__ int temp[];
    int thid = threadIdx.x, pout = 0, pin = 1;
    temp[pout * n + thid] = thid > 0 ? g_idata[blockIdx.x * n + thid - 1] : 0;
    __syncthreads();
    for (int offset = 1; offset < n; offset *= 2) {
        pout = 1 - pout;
        pin = 1 - pout;
        if (thid >= offset) temp[pout * n + thid] = temp[pin * n + thid] + temp[pin * n + thid - offset];
        else temp[pout * n + thid] = temp[pin * n + thid];
        __syncthreads();
    }
    g_odata[blockIdx.x * n + thid] = temp[pout * n + thid];
}
int main() {
    int *o = 0, *i = 0;
    prescan<<<64, N, 2 * N * sizeof(int)>>>(o, i, N);
}
