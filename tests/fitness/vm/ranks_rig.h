/* Four ranks with peers' memories, and PTX kernels that run on them side by side. */
#ifndef TESTS_FITNESS_VM_RANKS_RIG_H
#define TESTS_FITNESS_VM_RANKS_RIG_H

#include "fitness/vm/vm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define RANKS 4u
#define THREADS 64u
enum { WORDS = RANKS * THREADS };
#define INBOX (2 * RANKS * THREADS)
#define FLAGS 64u

typedef struct params {
    uint64_t table; /* of each rank: in, out, inbox, flags */
    uint32_t rank, ranks;
} params;

typedef struct rank_data {
    vm_memory *memory;
    uint64_t address[4];
    uint32_t *in, *out, *inbox, *flags;
    params params;
} rank_data;

typedef struct rig {
    rank_data ranks[RANKS];
    vm_result results[RANKS];
    unsigned apart; /* VM_CHECK_BEGIN, VM_CHECK_END */
} rig;

static inline void *buffer(vm_memory *m, vm_buffer_kind kind, const char *name, uint32_t words,
                           uint64_t *address) {
    ev_error err;
    assert_int_equal(vm_memory_alloc(m, (uint64_t)words * 4, kind, name, address, &err), EV_OK);
    return vm_memory_host(m, *address);
}

static inline uint32_t input(uint32_t rank, uint32_t i) {
    return (rank * WORDS + i + 1) * 2654435761u >> 5;
}

static inline void make_rank(rank_data *d, uint32_t rank) {
    d->in = buffer(d->memory, VM_BUFFER_IN, "in", WORDS, &d->address[0]);
    d->out = buffer(d->memory, VM_BUFFER_OUT, "out", WORDS, &d->address[1]);
    d->inbox = buffer(d->memory, VM_BUFFER_SCRATCH, "inbox", INBOX, &d->address[2]);
    d->flags = buffer(d->memory, VM_BUFFER_INOUT, "flags", FLAGS, &d->address[3]);
    d->params = (params){.rank = rank, .ranks = RANKS};
    for (uint32_t i = 0; i < WORDS; i++)
        d->in[i] = input(rank, i);
}

static inline int set_up(void **state) {
    static rig r;
    ev_error err;
    vm_memory *memories[RANKS];
    r = (rig){0};
    assert_int_equal(vm_memory_new_peers(1 << 22, RANKS, memories, &err), EV_OK);
    for (uint32_t i = 0; i < RANKS; i++) {
        r.ranks[i].memory = memories[i];
        make_rank(&r.ranks[i], i);
    }
    for (uint32_t i = 0; i < RANKS; i++) {
        rank_data *d = &r.ranks[i];
        uint64_t *table = buffer(d->memory, VM_BUFFER_IN, "table", RANKS * 8, &d->params.table);
        for (uint32_t k = 0; k < RANKS; k++)
            memcpy(table + (size_t)k * 4, r.ranks[k].address, sizeof r.ranks[k].address);
    }
    *state = &r;
    return 0;
}

static inline int tear_down(void **state) {
    rig *r = *state;
    for (uint32_t i = 0; i < RANKS; i++)
        vm_memory_free(r->ranks[i].memory);
    return 0;
}

/* %r0 thread, %r1 block, %r3 index, %r4 rank, %r5 ranks, %d0 table, %d5 4 * index; of this rank %d1
 * in, %d2 out, %d3 inbox, %d4 flags. */
#define PEER(to, rank, field)                                                                      \
    "mul.wide.u32 %d9, " rank ", 32; add.u64 %d9, %d9, %d0; ld.global.u64 " to ", [%d9+" field     \
    "];\n"
#define IN "0"
#define OUT "8"
#define INBOX_OF "16"
#define FLAGS_OF "24"
static const char head[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry k(.param .u64 table, .param .u32 rank, .param .u32 ranks) {\n"
    ".reg .pred %p<8>; .reg .b32 %r<24>; .reg .b64 %d<16>;\n"
    "mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x;\n"
    "mad.lo.u32 %r3, %r1, %r2, %r0; mul.wide.u32 %d5, %r3, 4;\n"
    "ld.param.u64 %d0, [table]; ld.param.u32 %r4, [rank]; ld.param.u32 %r5, [ranks];\n" //
    PEER("%d1", "%r4", IN) PEER("%d2", "%r4", OUT) PEER("%d3", "%r4", INBOX_OF)
        PEER("%d4", "%r4", FLAGS_OF) "mov.u32 %r8, 1;\n";

static inline vm_module *load(const char *body) {
    ev_error err;
    vm_module *m = NULL;
    char *text = NULL;
    assert_true(asprintf(&text, "%s%s\nret;\n}\n", head, body) > 0);
    if (vm_module_load(text, strlen(text), "k.ptx", &m, &err) != EV_OK)
        fail_msg("%s", err.text);
    free(text);
    return m;
}

static inline vm_launch launch_of(const rank_data *d, const vm_module *m, uint32_t blocks,
                                  uint64_t seed) {
    return (vm_launch){.module = m,
                       .entry = vm_module_find(m, "k"),
                       .grid = {blocks, 1, 1},
                       .block = {THREADS, 1, 1},
                       .params = &d->params,
                       .checks = VM_CHECK_ALL,
                       .fuel = 1u << 28,
                       .schedule_seed = seed};
}

/* Rank `other` (RANKS: none) runs a kernel of its own. */
static inline void run_two(rig *r, const vm_module *m, uint32_t other, const vm_module *m2,
                           uint32_t blocks, uint64_t seed) {
    ev_error err;
    vm_launch launches[RANKS];
    vm_rank ranks[RANKS];
    for (uint32_t i = 0; i < RANKS; i++) {
        rank_data *d = &r->ranks[i];
        vm_memory_reset(d->memory, 0xcd);
        memset(d->flags, 0, (size_t)FLAGS * 4);
        launches[i] = launch_of(d, i == other ? m2 : m, blocks, seed);
        launches[i].checks = (vm_checks)(launches[i].checks | r->apart);
        ranks[i] = (vm_rank){d->memory, &launches[i]};
    }
    if (vm_run_ranks(ranks, RANKS, r->results, &err) != EV_OK)
        fail_msg("%s", err.text);
}

static inline void run(rig *r, const char *body, uint32_t blocks, uint64_t seed) {
    vm_module *m = load(body);
    run_two(r, m, RANKS, NULL, blocks, seed);
    vm_module_free(m);
}

static inline void expect_ok(const rig *r, uint64_t seed) {
    for (uint32_t i = 0; i < RANKS; i++)
        if (!r->results[i].ok)
            fail_msg("seed %llu: %s", (unsigned long long)seed, r->results[i].trap.message);
}

static inline void expect(const rig *r, vm_trap_kind kind, const char *const *texts) {
    for (uint32_t i = 0; i < RANKS; i++) {
        assert_false(r->results[i].ok);
        assert_int_equal(r->results[i].trap.rank, r->results[0].trap.rank);
        assert_string_equal(r->results[i].trap.message, r->results[0].trap.message);
    }
    const vm_trap *t = &r->results[0].trap;
    if (t->kind != kind)
        fail_msg("expected %s, got %s", vm_trap_name(kind), t->message);
    for (; *texts; texts++)
        if (!strstr(t->message, *texts))
            fail_msg("no \"%s\" in: %s", *texts, t->message);
}
#define EXPECT(r, kind, ...) expect(r, kind, (const char *const[]){__VA_ARGS__, NULL})

#endif
