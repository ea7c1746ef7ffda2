/* For tests of the zoo: its buffers, its modules from PTX text and through clang-19, its launches.
 */
#ifndef TESTS_FITNESS_VM_ZOO_H
#define TESTS_FITNESS_VM_ZOO_H

#include "fitness/ptx/ptx.h"
#include "fitness/vm/vm.h"

#define ZOO_BLOCKS 4
#define ZOO_THREADS 64
#define ZOO_N (ZOO_BLOCKS * ZOO_THREADS) /* 32-bit words of `in`, `out` and `both` */
#define ZOO_ODD 20                       /* bytes of `odd` */

/* The arguments of every kernel: (in, out, both, n), or (in, out, both, odd). */
typedef struct zoo {
    vm_memory *memory;
    uint64_t in_at, out_at, both_at, odd_at;
    int32_t *in, *out, *both;
} zoo;

typedef struct zoo_launch {
    uint32_t blocks, threads, shared, resident;
    uint64_t seed, fuel;
    const vm_observer *observer; /* NULL: none */
} zoo_launch;

zoo *zoo_new(void); /* fails the test, as all here do */
void zoo_free(zoo *z);
/* What word `i` of `in` holds: from 0 to 100, the same at every place in a block of threads only by
 * chance. */
int32_t zoo_input(int i);
/* Resets the memory, zeroes `both` and `odd`, runs one kernel with all checks. */
vm_result zoo_run(zoo *z, const vm_module *m, const vm_entry *entry, const zoo_launch *how);

char *zoo_read(const char *path, size_t *bytes); /* malloc'ed, with a NUL */
vm_module *zoo_load(const char *path);           /* PTX text */
/* CUDA C through clang-19 -O2 for sm_90, with line numbers. */
vm_module *zoo_compile(const char *path);

#endif
