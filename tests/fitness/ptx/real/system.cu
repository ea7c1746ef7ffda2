/* What the runtime provides: printf, assert, malloc and free. */
#include "real.h"

KERNEL(system_printf) {
    int i = threadIdx.x, used = 0;
    if (i < 3)
        used = printf("lane %d of %u: %5.2f %s %c%% %lld %x\n", i, blockDim.x, i * 1.5,
                      i & 1 ? "odd" : "even", 'a' + i, (long long)i << 40, 255u + i);
    if (i == 2)
        printf("end\n");
    out[i] = used;
}

KERNEL(system_assert) {
    int i = threadIdx.x;
    assert(in[i] < 100);
    assert(i != 5 || n == 0);
    out[i] = in[i];
}

KERNEL(system_malloc) {
    int i = threadIdx.x;
    int *p = (int *)malloc((in[i] + 1) * sizeof(int));
    if (!p) {
        out[i] = -1;
        return;
    }
    for (int k = 0; k <= in[i]; k++)
        p[k] = k + i;
    int s = 0;
    for (int k = 0; k <= in[i]; k++)
        s += p[k];
    free(p);
    out[i] = s;
}
