/* Sums: what a loop that counts carries from turn to turn, such that its turns can be taken by
 * several threads: counts, and sums, greatest and least values of 32-bit numbers. The place of the
 * greatest or least value (argmax) is a *pick*: values that are all replaced where one test holds
 * that compares the first of them, the key. Private to ir/structure.
 *
 * Each thread that takes a part of the turns begins with a neutral value (the first one with the
 * loop's own), and what they end with is combined behind the loop.
 *
 * A *running* sum is one that the turns use as well, such as `s += x[i]; y[i] = s;`. All threads of
 * the group then make each round of turns together, and exchange in each (running.c). */
#ifndef IR_STRUCTURE_SUMS_INTERNAL_H
#define IR_STRUCTURE_SUMS_INTERNAL_H

#include "ir/structure/structure_internal.h"

enum { IR_MOST_SUMS = 72 };

typedef enum ir_sum_kind {
    IR_SUM_NONE,
    IR_SUM_ADD,
    IR_SUM_FADD,
    IR_SUM_MAX, /* of real numbers, as maxnum; the next of whole numbers */
    IR_SUM_MIN,
    IR_SUM_SMAX,
    IR_SUM_SMIN,
    IR_SUM_UMAX,
    IR_SUM_UMIN,
    IR_SUM_PICK,
    IR_SUM_STEP
} ir_sum_kind;

/* A PHI of the loop's header. */
typedef struct ir_sum {
    LLVMValueRef phi;
    ir_sum_kind kind; /* IR_SUM_STEP: it counts, as the induction variable does */
    int64_t step;
    bool runs; /* a turn uses it */
} ir_sum;

typedef struct ir_sums {
    const ir_flow *flow; /* borrowed */
    const ir_loop *loop; /* borrowed */
    uint32_t threads;    /* that share the turns: a round is so many turns */
    ir_sum items[IR_MOST_SUMS];
    uint32_t count;
    bool any;     /* one of them is no count */
    bool runs;    /* one of them is a running sum */
    bool wraps;   /* the loop's counter may come near the end of its type */
    uint32_t key; /* of the picks; IR_NONE: there are none */
    LLVMValueRef key_phi;
    uint32_t test; /* the instruction that compares the key with what may replace it */
    bool takes_if; /* the test's value with which the picks are replaced */
    bool is_real;  /* the key is a real number */
    bool is_greater, is_strict,
        is_signed; /* what replaces the key is greater, or less; not equal */
} ir_sums;

/* Lists what the loop carries, for `threads` that share its turns. EV_BAD, with the reason: the
 * loop does not count from a start to a bound at its top, its counter does not hold a round, the
 * loop carries something else, or something else is used behind it. */
ev_status ir_sums_find(const ir_flow *flow, const ir_loop *loop, uint32_t threads, ir_sums *out,
                       ev_error *err) EV_CHECKED;
/* Sets `wraps`. EV_BAD: the loop's counter may wrap around, and cannot be stopped at its bound. */
ev_status ir_sums_check_wrap(ir_sums *p, ev_error *err) EV_CHECKED;

/* The operands of an instruction that may be the sum so far: first to last. IR_SUM_NONE: it
 * combines nothing. */
ir_sum_kind ir_sum_kind_of(LLVMValueRef insn, unsigned *first, unsigned *last);
/* Whether an instruction uses a value as the sum so far alone, and not as what is added as well. */
bool ir_sum_is_taken(LLVMValueRef user, LLVMValueRef value);
/* What a combination with changes nothing; not of IR_SUM_MAX and IR_SUM_MIN, which leave numbers
 * out that are none. */
LLVMValueRef ir_sum_neutral(ir_sum_kind kind, LLVMTypeRef type);
/* Whether sums of a type can be shared: a float or a whole number of 32 bits. */
bool ir_sum_is_word(LLVMTypeRef type);
/* Whether the loop of the sums holds an instruction. */
bool ir_sums_hold(const ir_sums *sums, LLVMValueRef value);
/* Whether `value` is the PHI combined with other values by operations of one kind, also under
 * conditions. *kind is IR_SUM_NONE at first. */
bool ir_sum_leads_to(const ir_sums *sums, LLVMValueRef value, LLVMValueRef phi, ir_sum_kind *kind);

/* The loop inside of the one of the sums whose header has a PHI; NULL: none. */
const ir_loop *ir_sums_inner(const ir_sums *sums, LLVMValueRef phi);
/* Whether a loop inside goes on with the sum of a PHI. */
bool ir_sums_nest(const ir_sums *sums, LLVMValueRef phi);

/* How the turns of a kernel's loops are shared by the threads of a group. */
typedef struct ir_share {
    ir_structure *s;
    LLVMBuilderRef builder;
    uint32_t threads;      /* of the group */
    LLVMValueRef place;    /* of the thread in the group, an i32 */
    LLVMValueRef is_first; /* the place is 0 */
    LLVMValueRef mask;     /* of the group's lanes in this thread's warp; NULL: not known */
} ir_share;

/* What the threads of a group end a loop with, and its combination, by item of the sums. */
typedef struct ir_gather {
    const ir_sums *sums;
    LLVMValueRef value[IR_MOST_SUMS];  /* what this thread has so far; NULL: the item is a count, or
                                          a running sum, which all threads have */
    LLVMValueRef holder[IR_MOST_SUMS]; /* stands for the result until ir_share_close */
    LLVMValueRef when; /* the turn of the last pick, counted from 1; NULL: there are none */
} ir_gather;

/* Lets the thread at place l begin at the l-th turn and go on by as many turns as the group has
 * threads, and gives all but the first a neutral value in place of each sum's start. */
void ir_share_turns(const ir_share *share, const ir_sums *sums, ir_gather *out);
/* Spreads the loop's counters alone. */
void ir_share_counters(const ir_share *share, const ir_sums *sums);
/* What ir_share_turns does, for a loop with running sums, by a group of at most IR_WARP lanes side
 * by side. */
ev_status ir_share_rounds(const ir_share *share, const ir_sums *sums, ir_gather *out,
                          ev_error *err) EV_CHECKED;
/* Two loops, one in the other, that make the same sums (nest.c). */
typedef struct ir_nest {
    uint32_t rows; /* of the group's threads */
    const ir_sums *outer;
    ir_sums inner;
} ir_nest;
/* Fills in the sums of the loop `outer`, which `out` then refers to. `threads` of the group: 4 at
 * least and a power of two. EV_BAD, with the reason: their rows cannot share the turns of the loop
 * and of the one inside. */
ev_status ir_nest_find(const ir_flow *flow, const ir_loop *outer, uint32_t threads, ir_sums *sums,
                       ir_nest *out, ev_error *err) EV_CHECKED;
/* What ir_share_turns does, for both loops; `out` is of the outer one. */
void ir_nest_share(const ir_share *share, const ir_nest *nest, ir_gather *out);
/* EV_BAD, with the reason: the turns of a loop with running sums cannot be made together. */
ev_status ir_running_check(const ir_share *share, const ir_sums *sums, ev_error *err) EV_CHECKED;
/* Takes what this thread ends the loop with; the builder then stands behind the loop. */
void ir_share_open(const ir_share *share, ir_gather *gather);
/* Combines what this thread has with what another one has: its values and its `when`. */
void ir_share_meet(const ir_share *share, ir_gather *gather, const ir_gather *other);
/* Combines what the lanes of a warp have whose places differ in the bits below `lanes`, a power of
 * two; all of them get the same bits. */
void ir_share_exchange(const ir_share *share, ir_gather *gather, uint32_t lanes);
/* Gives the code behind the loop the combined values. */
void ir_share_close(const ir_gather *gather);
/* The lanes of a warp that are in one group of `lanes` lanes side by side, a power of two. */
LLVMValueRef ir_share_mask(const ir_share *share, uint32_t lanes);
/* Whether an instruction has an effect that one thread of a group must have for all. */
bool ir_share_is_effect(LLVMValueRef insn);
/* Whether a loop holds such an instruction. */
bool ir_share_writes(const ir_flow *flow, const ir_loop *loop);
/* Moves an instruction to the end of a block of code. */
void ir_share_move(const ir_share *share, LLVMValueRef insn, LLVMBasicBlockRef block);
/* Puts what stands before `first` in its block of code into a new block, which all that led to the
 * old one lead to; returns the new block, which has no end yet. */
LLVMBasicBlockRef ir_share_split_before(const ir_share *share, LLVMValueRef first);
/* Puts a run of effects, beginning at `first`, under a condition. What stands before them stays
 * before them in a block of its own, and so does arithmetic between them. `order` is NULL, or
 * a mask of lanes that wait for each other before and after stores of what other lanes may read:
 * in shared memory, in an array that the kernel reads, or in one that callers may pass twice. */
void ir_share_guard_run(const ir_share *share, LLVMValueRef first, LLVMValueRef condition,
                        LLVMValueRef order);
/* Lets a counter grow by as many turns as the group has threads. The loop's own counter stops at
 * its bound where it may come near the end of its type; otherwise a counter that does not wrap in
 * the loop as it was is taken not to wrap: it may only where the bound is within a few turns of the
 * type's greatest number. The old count of the next turn may have other uses, and stays. */
void ir_share_count_on(const ir_share *share, const ir_sums *sums, const ir_sum *it);
/* Gives all threads but the first a neutral value in place of a sum's start. */
void ir_share_start(const ir_share *share, const ir_sums *sums, const ir_sum *it);
/* Puts all effects of a block of code under a condition, run by run, but those that `leaves` tells;
 * NULL: none are left. `order`: see ir_share_guard_run. */
typedef bool ir_share_leaves(LLVMValueRef effect);
void ir_share_guard_block(const ir_share *share, LLVMBasicBlockRef block, ir_share_leaves *leaves,
                          LLVMValueRef condition, LLVMValueRef order);
/* A new shared array, and the address of its element `at`, where the builder stands. */
LLVMValueRef ir_share_new_array(const ir_share *share, LLVMTypeRef of, uint64_t count);
LLVMValueRef ir_share_place(const ir_share *share, LLVMValueRef array, LLVMValueRef at);
/* What another lane of the warp has (PTX ISA, "shfl.sync"): `mode` is "bfly", "up" or "idx". */
LLVMValueRef ir_share_shuffle(const ir_share *share, const char *mode, LLVMValueRef value,
                              uint32_t operand, uint32_t clamp);
/* Combines two values as a sum of the kind does. */
LLVMValueRef ir_share_combine(const ir_share *share, ir_sum_kind kind, LLVMValueRef a,
                              LLVMValueRef b);
/* Gives a PHI of the loop's header another value for the edge from `block`. */
void ir_share_set_incoming(const ir_flow *flow, LLVMValueRef phi, uint32_t block,
                           LLVMValueRef value);
/* Lets the builder stand at the end of a block. */
void ir_share_stand_at_end(const ir_share *share, const ir_flow *flow, uint32_t block);
LLVMValueRef ir_share_number(const ir_share *share, uint64_t value);
LLVMValueRef ir_share_call(const ir_share *share, const char *intrinsic, LLVMValueRef *arguments,
                           unsigned count);

#endif
