/* Small kernels in PTX on a GPU of two SMs, and their modelled times. */
#ifndef TESTS_FITNESS_MODEL_MODEL_RIG_H
#define TESTS_FITNESS_MODEL_MODEL_RIG_H

#include "fitness/model/model.h"
#include "tests/fitness/model/gpu_of.h"

typedef struct subject {
    const char *body;   /* of the kernel: %r1 thread, %r2 block, %r4 both, %rd1 in, %rd2 out */
    const char *bounds; /* directives of the entry; NULL: none */
    uint32_t grid, block, shared;
    uint32_t before;   /* bytes of another buffer that lies before them; 0: there is none */
    int peer;          /* 1: `in` is a peer's memory, */
    model_reach reach; /* and so far away */
} subject;

#define SMS 2u                  /* few blocks fill them */
#define BUFFER_BYTES (1u << 21) /* of `in` and of `out` */
#define ROUNDS 8

void set(gpu *g, gpu_key key, double value);
/* A shipped description with SMS SMs, and with nothing but the banks that bounds shared memory. The
 * caller frees it. */
gpu *load_small(const char *id);
/* Runs all blocks of the subject, and fails the test if that traps. */
model_time time_of(const gpu *g, const subject *s);
/* Cycles of the grid, without the launch. */
double cycles(const gpu *g, const model_time *t);
double cycles_of(const gpu *g, const subject *s);
/* Fails the test unless a / b is `expected`, within that share of it. */
void assert_ratio(const char *what, double a, double b, double expected, double within);
/* `rounds` times `inner`, itself repeated `copies` times. The caller frees the text. */
char *loop_of(const char *before, const char *inner, int copies, int rounds);
/* What `copies` more of `inner` cost, in cycles of a round; so that the loop itself is left out. */
double more_cycles(const gpu *g, const char *before, const char *inner, uint32_t grid,
                   uint32_t block, int copies);

#endif
