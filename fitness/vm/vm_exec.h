/* Inside of the virtual machine: a launch while it runs. Warps, their sets of lanes, blocks,
 * frames.
 *
 *   set      lanes of a warp that stand at the same pc in the same frame
 *   turn     what a warp executes until it waits, ends, or its budget is spent
 *   run      a straight line of instructions without a change of set; counted as one at its end
 */
#ifndef FITNESS_VM_VM_EXEC_H
#define FITNESS_VM_VM_EXEC_H

#include "base/pcg.h"
#include "fitness/ptx/ptx.h"
#include "fitness/vm/vm_memory.h"

#define VM_LANES 32
#define VM_FULL UINT32_MAX
#define VM_BARRIERS 16

typedef struct vm_state vm_state; /* a launch while it runs */
/* Executes the current set from w->pc until its run ends. */
typedef void (*vm_run_fn)(vm_warp *w);
void vm_run_set_baseline(vm_warp *w);
void vm_run_set_avx2(vm_warp *w);
void vm_run_set_avx512(vm_warp *w);
vm_run_fn vm_isa_run(unsigned isa);
typedef struct vm_block vm_block;
typedef struct vm_wave vm_wave;       /* the blocks of a launch that are alive together */
typedef struct vm_session vm_session; /* launches that run side by side */
typedef struct vm_chunks vm_chunks;   /* blocks to share out to jobs */

typedef struct vm_frame vm_frame;
struct vm_frame {
    vm_frame *next;       /* in the pool of its function */
    vm_frame *next_made;  /* of all that the launch made */
    vm_frame *next_level; /* of the warp's at the same depth */
    uint32_t func;
    uint32_t depth;
    uint32_t lanes;       /* live in this frame, or in frames that it called */
    uint32_t local_least; /* a lower bound of local_top over its lanes */
    uint32_t local_base[VM_LANES], local_top[VM_LANES];
    uint8_t *regs;
    uint8_t *undefined; /* undefined bits of `regs` (vm_undefined.c); NULL: none */
    uint32_t ret_pc[VM_LANES];
    vm_frame *parent[VM_LANES];
};

typedef enum vm_set_state {
    VM_SET_READY,
    VM_SET_SYNC,         /* waits for the lanes of `wanted` at the same pc */
    VM_SET_BARRIER,      /* arrived; waits for the block */
    VM_SET_RECONVERGING, /* at an aligned barrier; waits for the other lanes of its warp */
} vm_set_state;

typedef struct vm_set {
    uint32_t mask;
    uint32_t pc;
    vm_frame *frame;
    vm_set_state state;
    uint32_t wanted;
    bool apart; /* SYNC: its lanes have different member masks; vm_reconverge releases them */
    uint32_t barrier;
    uint64_t ran; /* tick of its last run */
} vm_set;

/* Passes over the banks of a site's last access by a whole warp, and its pattern. The observer
 * needs the passes of each access, and most accesses repeat the pattern. Moving all lanes by whole
 * words only rotates the banks. */
typedef struct vm_site_passes {
    uint32_t passes; /* 0: none yet */
    uint32_t bytes;
    uint64_t low;       /* bits of lane 0's address within a word */
    uint64_t apart[32]; /* each lane's address minus lane 0's */
} vm_site_passes;

/* Why a run ended. */
typedef enum vm_stop {
    VM_STOP_TURN,    /* continues at w->pc when chosen again */
    VM_STOP_SYNC,    /* waits at w->pc for w->wanted; 0: see vm_set.apart */
    VM_STOP_BARRIER, /* arrives at w->barrier; continues at w->pc after it */
    VM_STOP_GONE,    /* all lanes of the set ended or moved to other sets */
    VM_STOP_TRAP,
} vm_stop;

/* ---- asynchronous copies and mbarriers (exec_async.h, vm_async.c) */

/* One lane's pending cp.async. */
typedef struct vm_copy {
    const uint8_t *from; /* host */
    uint32_t to;         /* offset in shared memory */
    uint8_t bytes, read; /* bytes written; bytes read from the source, the rest are zeros */
    uint8_t lane;
    bool marked;       /* the source may be written, and its words have marks (vm_promise.c) */
    uint32_t group;    /* number of groups that the lane committed before */
    uint32_t mbarrier; /* offset + 1 of the mbarrier that signals its end; 0: none. The bytes are
                          written already, but marked until the phase ends */
    uint32_t entry;    /* race entry at the end of the phase */
} vm_copy;

typedef struct vm_async {
    vm_copy *copies;
    size_t count, capacity;
    uint32_t committed[VM_LANES]; /* groups */
} vm_async;

typedef struct vm_mbarrier {
    uint32_t offset; /* in shared memory */
    uint32_t made;   /* race entry of its init */
    uint32_t stamp;  /* races: the newest when its last phase ended */
} vm_mbarrier;

/* A look: the checked addresses of a warp's lanes, kept for the next access of the same lanes
 * through the same register (ptx_looks.c). */
typedef struct vm_look {
    uint32_t mask;             /* the accessing lanes */
    uint8_t how, group, lanes; /* as of vm_access */
    uint8_t passes;            /* of an access of shared memory; 0: not counted yet */
    uint8_t joined[2];         /* the same, of joined ones of two words, and of four */
    uint64_t lo, hi, bias;     /* as of vm_access */
} vm_look;

struct vm_warp {
    uint8_t *regs;    /* of the current frame */
    uint32_t mask;    /* of the current set */
    uint32_t stop_pc; /* branching there or beyond ends the run */
    int64_t budget;   /* warp instructions left of the turn */
    int64_t spared;   /* budget given up by a set that only polls */
    const ptx_insn *code;
    uint32_t run_pc;   /* where the run began */
    uint32_t event_pc; /* where the stretch for the observer began */
    uint32_t cc;       /* carry flag of each lane */
    bool observed;
    bool tracked; /* of a job, or ranked: vm_state */
    bool check_init, check_races, check_fences, check_lanes;
    bool takes_plain, takes_same; /* race checks without VM_CHECK_PLAIN, or _SAME */
    bool check_begin, check_end;  /* of other ranks: vm_apart.c */
    vm_approx approx;
    vm_state *state;
    vm_block *block;
    vm_frame *frame;
    uint8_t *arena; /* global memory, host */
    vm_segment *segments;
    uint8_t *shared;
    uint64_t shared_bytes;
    uint32_t stamp;    /* races: stamp since its last synchronisation; 0: none yet */
    uint32_t acquired; /* races: stamps up to this one are ordered before the warp */
    /* Races: stamps of its own block, of its rank, and of all ranks, up to these are ordered before
     * its plain loads from global memory. They lag behind `acquired` from the read of a flag to the
     * next acquire fence of that scope. */
    uint32_t loads_block, loads_all, loads_system;
    uint32_t sync_stamp; /* races: its block's stamps up to this one are before its last barrier */
    uint32_t
        first_since_barrier; /* races: its first stamp since that barrier or a message; 0: none */
    /* Races: scope of its last fence; 1: its block, 2: its rank, 3: all ranks. */
    uint8_t fenced;
    bool ranked; /* vm_state */
    /* ---- the current set, when a run ends */
    vm_stop stop;
    uint32_t pc;
    uint32_t wanted;
    uint32_t barrier;
    /* ---- all else */
    vm_set sets[VM_LANES];
    unsigned set_count;
    uint32_t live;    /* lanes that have not ended */
    uint32_t index;   /* in the block */
    uint32_t arrived; /* lanes waiting at a barrier */
    uint8_t *local;   /* local_capacity bytes for each lane */
    uint64_t *local_written;
    uint8_t *local_undefined; /* undefined bits of written bytes, once they travel; else NULL */
    uint32_t cc_undefined;    /* lanes whose carry is undefined */
    bool again;               /* the load that began vm_undefined.c runs again, without a trap */
    uint64_t local_capacity;
    uint64_t local_used; /* the most bytes that a lane could reach since local memory was cleared */
    vm_frame **levels;   /* frames of called functions by depth, from 1: lanes share them */
    size_t level_count;
    uint64_t ticks;
    uint32_t polls;       /* reads since it last changed memory */
    uint64_t poll_change; /* the state's last_change at its last read */
    bool spins;           /* in its last turn all its sets only polled */
    bool yields;          /* it left its turn before an access that others may come ahead of */
    uint64_t yielded;     /* the state's last_change then; UINT64_MAX: it has not yet */
    vm_async *async;      /* NULL: no cp.async yet */
    const ptx_insn *const
        *places; /* the instruction of each lane during reconvergence (vm_reconverge.c), or NULL */
    uint32_t tmp[64] __attribute__((aligned(64))); /* results of a masked instruction */
    vm_look looks[PTX_LOOKS];
};

/* What a rank knows of another one (vm_apart.c). */
typedef struct vm_heard {
    uint32_t stamp; /* races: the newest of that rank's that it was told of; 0: none */
    uint32_t seen;  /* the newest of a strong write of that rank's that it has read itself */
    bool begun;     /* it was told of any */
} vm_heard;

typedef struct vm_barrier {
    uint32_t arrived;  /* threads */
    uint32_t expected; /* given by the instruction; 0: all live threads */
    uint32_t count;    /* of true predicates, for bar.red */
    bool some_false;
} vm_barrier;

struct vm_block {
    uint32_t linear;
    uint64_t place; /* in the grid, or in the launch's sample */
    uint32_t id[3];
    uint32_t warp_count;
    uint32_t live_threads;
    uint64_t instructions; /* executed so far, for clocks */
    uint64_t stored;       /* sectors that it wrote to global memory so far */
    vm_warp *warps;
    uint8_t *shared;
    uint32_t *shared_writes; /* shadow: an entry a word, vm_memory.h */
    uint32_t *shared_reads;
    vm_barrier barriers[VM_BARRIERS];
    vm_mbarrier *mbarriers;
    size_t mbarrier_count, mbarrier_capacity;
    bool active;
    bool repeats;     /* returned to an earlier state while no memory changed */
    uint64_t earlier; /* hash of that state (vm_livelock.c) */
    ev_pcg rng;       /* order of its warps */
};

/* A read of a warp that spins. */
typedef struct vm_poll {
    bool found;
    bool strong; /* volatile, relaxed or stronger, atomic */
    bool shared;
    unsigned lane;
    uint32_t pc;
    uint64_t address;
} vm_poll;

/* An uninitialised read of shared memory, reported later, since it may turn out to be a race. */
typedef struct vm_deferred {
    const vm_block *block; /* NULL: there is none */
    uint64_t lo, hi;       /* offsets in its shared memory */
    vm_trap trap;
} vm_deferred;

/* The owner of a stamp: a warp, as by vm_race_self, and if its memory has peers, the reach of its
 * strong accesses: */
#define VM_RACE_OWNER ((1ull << 60) - 1)
#define VM_RACE_REACHES (1ull << 61) /* it has strong accesses: to its own rank, */
#define VM_RACE_SYSTEM (1ull << 62)  /* or to all ranks, */
#define VM_RACE_TELLS (1ull << 63)   /* with release semantics for what its warp did before */

/* Owners of all race stamps, for all launches that run side by side. */
typedef struct vm_races {
    uint32_t stamp;        /* the newest stamp */
    uint32_t first_stamp;  /* the newest before the launches, and those that they follow */
    uint32_t launch_stamp; /* the newest before the launches */
    uint64_t *owners;      /* of the stamps after first_stamp: vm_race.c */
    size_t owner_capacity;
    vm_race_word *words; /* VM_RACE_WORDS places; NULL: no race checks */
    uint16_t *taken;     /* places used by the launches */
    size_t taken_count;
    bool promised; /* the launches marked words of global memory (vm_promise.c) */
} vm_races;

_Static_assert(VM_RACE_WORDS <= 1 << 16, "a place is a number of 16 bits");

struct vm_state {
    vm_session *session;
    vm_wave *wave;
    const vm_module *module;
    const ptx_func *entry;
    vm_memory *memory;
    const vm_launch *launch;
    vm_result *result;
    vm_spare spare; /* of this launch */
    uint64_t fuel;
    int64_t *runs; /* difference array over pcs: runs begun minus runs ended before it */
    vm_segment *segments;
    vm_frame **pools; /* a function */
    vm_frame *frames; /* all that were made */
    uint32_t threads;
    uint64_t shared_used;  /* a block, dynamic included */
    uint64_t shared_bytes; /* the same, rounded up for the host */
    uint32_t *gaps;        /* words of shared memory in which nothing stands */
    size_t gap_count;
    uint64_t globals;     /* address of the module's variables */
    uint8_t *consts;      /* the .const variables */
    uint8_t *const_copy;  /* of the launch, where they hold addresses; or NULL */
    uint64_t last_change; /* thread instructions when memory last changed */
    uint64_t happenings;  /* blocks begun and ended, clocks read, system calls */
    vm_poll *poll;        /* receives reads in place of the observer; NULL: none */
    uint32_t rank;        /* index in the session */
    bool ranked;          /* its memory has peers */
    vm_heard *heard;      /* what it knows of each rank (vm_apart.c); NULL: not kept */
    vm_races *races;
    vm_deferred deferred;
    vm_block *blocks; /* alive together */
    uint32_t block_count;
    bool out_of_memory;
    bool trapped;
    /* ---- of a job (vm_jobs.c) */
    bool tracked;       /* accesses to global memory are noted in the view's maps */
    bool whole_turns;   /* a block that does not end in its first turn sets order_matters */
    bool order_matters; /* the result depends on the order of blocks: use one job */
    /* ---- observer's batch */
    vm_event *events;
    size_t event_count;
    uint64_t *sectors;
    size_t sector_count;
    vm_site_passes *site_passes; /* by site */
    vm_run_fn run;
    /* ---- undefined bits of local memory (vm_undefined.c) */
    ptx_insn *undefined_code;  /* the module's, with wrappers, once the bits travel; or NULL */
    char undefined_first[300]; /* for traps: the place of the first read of unwritten bytes */
};

/* ---- called by handlers */

/* Fills the launch's trap, once. `lane`: the failing lane. */
void vm_trap_raise(vm_warp *w, const ptx_insn *ip, vm_trap_kind kind, unsigned lane,
                   const uint64_t *address, const char *format, ...) EV_PRINTF(6, 7);
/* Sets rank, block and thread; `block`: its linear number. */
void vm_trap_place(vm_trap *t, const vm_state *s, uint32_t block, unsigned warp, unsigned lane);
void vm_trap_append_thread(vm_trap *t, const vm_state *s);
/* Appends to the message of a trap. */
void vm_trap_append(vm_trap *t, const char *format, ...) EV_PRINTF(2, 3);
/* Appends " at address A, offset O in WHAT 'NAME'" to a message. WHAT is the nearest buffer,
 * variable or parameter; for a generic address, also the window that it fell into. */
void vm_place_append(char *text, size_t size, const vm_warp *w, const ptx_insn *ip, unsigned lane,
                     uint64_t address);
/* The same for an address in global memory. */
void vm_place_append_global(char *text, size_t size, const vm_state *s, uint64_t address);
#define VM_UNINITIALISED "a read of %u bytes that nothing has written"
/* Notes an uninitialised read of `bytes` at `offset` of shared memory. It becomes the launch's trap
 * at the block's next barrier or end, unless a race on these bytes is found first. */
void vm_trap_defer(vm_warp *w, const ptx_insn *ip, unsigned lane, uint64_t address, uint64_t offset,
                   unsigned bytes);
/* Call before a race trap: drops the deferred trap if it concerns the same bytes. */
void vm_trap_drop_deferred(vm_warp *w, uint64_t offset, unsigned bytes);
/* Call at the block's barrier or end: raises the deferred trap. */
void vm_trap_settle(vm_state *s, const vm_block *b);
/* ---- undefined bits of local memory (vm_undefined.c) */
/* Instead of a trap at the first load of local bytes that nothing has written, by the lane at the
 * address: from now on undefined bits travel in this launch. The load runs again (vm_warp.again).
 * False: out of memory. */
bool vm_undefined_begin(vm_warp *w, const ptx_insn *ip, unsigned lane, uint64_t address);
/* Before each instruction from then on, with the lanes of the set; false after a trap. */
bool vm_undefined_step(vm_warp *w, const ptx_insn *ip, const uint8_t *regs, uint32_t mask);
/* The trap of a decision by undefined bits: "WHAT depends on local memory ...". */
void vm_undefined_trap(vm_warp *w, const ptx_insn *ip, unsigned lane, const char *what);
/* The undefined bits of a frame, made if it has none; NULL: out of memory. */
uint8_t *vm_undefined_frame(vm_state *s, vm_frame *frame);
ptx_handler vm_isa_undefined(unsigned isa);
#define VM_BATCH_EVENTS 256 /* few enough to stay in the host's nearest cache */
#define VM_EVENT_SECTORS 40 /* sectors of one event, at most */
/* Passes a full batch to the observer, and makes room for one more event of VM_EVENT_SECTORS. */
void vm_batch_flush(vm_warp *w);
static inline void vm_event_room(vm_warp *w) {
    if (__builtin_expect(w->state->event_count >= VM_BATCH_EVENTS, 0))
        vm_batch_flush(w);
}
/* Ends the observer's stretch at `pc`, with `sectors` written behind those of the batch. */
static inline vm_event *vm_event_put(vm_warp *w, uint32_t pc, uint32_t active, unsigned sectors,
                                     unsigned passes) {
    vm_state *s = w->state;
    vm_event *e = &s->events[s->event_count++];
    *e = (vm_event){.pc = w->event_pc,
                    .count = pc - w->event_pc + 1,
                    .active = active,
                    .sectors = (uint16_t)sectors,
                    .passes = (uint16_t)passes,
                    .first_sector = (uint32_t)s->sector_count};
    s->sector_count += sectors;
    w->event_pc = pc + 1;
    return e;
}
/* The same without a memory access; the batch may be full. */
void vm_event_push(vm_warp *w, uint32_t pc, uint32_t active);
/* Ends the run: counts [run_pc, end) as executed by the lanes of the set. */
static inline void vm_run_end(vm_warp *w, uint32_t end, unsigned uncounted) {
    uint32_t n = end - w->run_pc;
    if (!n)
        return;
    w->state->runs[w->run_pc]++;
    w->state->runs[end]--;
    n -= uncounted;
    w->state->result->counters.thread_instructions +=
        (uint64_t)n * (unsigned)__builtin_popcount(w->mask);
    w->budget -= n;
}
/* Splits the lanes of `mask` off the current set; they continue at `pc`. */
void vm_set_push(vm_warp *w, uint32_t mask, uint32_t pc, vm_frame *frame);
/* Before an atomic or a strong load, where the order has a seed: whether the warp leaves its turn
 * here, so that others come between its last access and this one (vm_wave.c). */
bool vm_warp_yields(vm_warp *w);
/* A call or return of the lanes of `mask`; false: trap or out of memory. */
bool vm_frame_call(vm_warp *w, const ptx_insn *ip, uint32_t mask);
bool vm_frame_alloca(vm_warp *w, const ptx_insn *ip, uint32_t mask);
bool vm_frame_stack_restore(vm_warp *w, const ptx_insn *ip, uint32_t mask);
/* A system call of the virtual machine, by all lanes of `mask` in order of the lanes. */
bool vm_system_call(vm_warp *w, const ptx_insn *ip, uint32_t mask);
bool vm_frame_return(vm_warp *w, const ptx_insn *ip, uint32_t mask);
void vm_lanes_exit(vm_warp *w, uint32_t mask);
uint64_t vm_sreg_read(const vm_warp *w, ptx_sreg sreg);
void vm_poll_note(vm_warp *w, const ptx_insn *ip, vm_space space, unsigned lane, uint64_t address);
bool vm_local_grow(vm_warp *w, uint64_t bytes);

/* ---- asynchronous copies and mbarriers (vm_async.c) */
/* False: out of memory, which the launch then reports. */
bool vm_copy_add(vm_warp *w, vm_copy copy);
void vm_copies_commit(vm_warp *w, uint32_t lanes);
/* Ends the lanes' copies, except those of their `but` newest groups. UINT32_MAX: all copies, also
 * those in no group. `entry`: the race entry of the warp now, without its lane. */
void vm_copies_wait(vm_warp *w, uint32_t lanes, uint32_t but, uint32_t entry);
/* Binds the lane's copies to the mbarrier: they end with its phase. */
void vm_copies_bind(vm_warp *w, unsigned lane, uint32_t mbarrier, uint32_t entry);
/* Ends the copies bound to the mbarrier, after its phase. */
void vm_copies_release(vm_block *b, uint32_t mbarrier);
vm_mbarrier *vm_mbarrier_find(const vm_block *b, uint32_t offset);
vm_mbarrier *vm_mbarrier_add(vm_block *b, uint32_t offset); /* NULL: out of memory */
void vm_mbarrier_remove(vm_block *b, vm_mbarrier *mbarrier);
void vm_async_reset(vm_block *b); /* before another block uses the place */
void vm_async_free(vm_block *b);
void vm_async_forget(vm_block *b); /* when all race stamps begin anew */

/* ---- races (vm_race.c): when accesses become ordered */
/* Before and after the states of a session; false: out of memory. */
bool vm_race_begin(vm_session *x);
void vm_race_end(vm_session *x);
void vm_race_block(vm_state *s, vm_block *b);
void vm_race_stamp(vm_warp *w);   /* gives the warp a new stamp */
void vm_race_acquire(vm_warp *w); /* all until now is ordered before the warp */
static inline uint64_t vm_race_self(const vm_warp *w) {
    return ((uint64_t)w->state->rank << 32 | w->block->linear) << 5 | w->index;
}
/* UINT64_MAX: an earlier launch. */
static inline uint64_t vm_race_owner(const vm_state *s, uint32_t stamp) {
    const vm_races *r = s->races;
    return stamp > r->first_stamp ? r->owners[stamp - r->first_stamp - 1] & VM_RACE_OWNER
                                  : UINT64_MAX;
}
static inline uint32_t vm_race_rank(uint64_t owner) {
    return (uint32_t)((owner & VM_RACE_OWNER) >> 37);
}
/* The byte entries of a word of global memory; NULL: it has one entry. */
const vm_race_word *vm_race_parts(const vm_state *s, uint64_t word);
/* The byte entries of a word, made from the word's entry if it has none. Never NULL. */
vm_race_word *vm_race_split(vm_warp *w, uint8_t space, uint64_t word);
/* Replaces the byte entries of a word by one, if all its accesses are ordered before every warp;
 * else false. */
bool vm_race_join(vm_warp *w, uint8_t space, uint64_t word);
void vm_race_warp(vm_warp *w);

/* ---- promises (vm_promise.c), under race checks */
/* Marks a word of global memory that the warp reads through the read-only path or, if `copy`, by
 * a cp.async. `bytes`: a bit for each byte that is read. */
void vm_promise_note(vm_warp *w, uint64_t word, uint32_t bytes, unsigned lane, bool copy);
/* The copy ends now: it has read its source until now, for the race check. `entry`: the race entry
 * of the warp now, with the lane. */
void vm_promise_copied(vm_warp *w, const vm_copy *c, uint32_t entry);
/* Whether the lane may write the bytes of the word; false after a trap. */
bool vm_promise_kept(vm_warp *w, const ptx_insn *ip, unsigned lane, uint64_t address, uint64_t word,
                     uint32_t bytes);
/* Traps: the lane reads through the read-only path what the write of `entry` wrote. */
void vm_promise_written(vm_warp *w, const ptx_insn *ip, unsigned lane, uint64_t address,
                        uint32_t entry);

/* ---- races between ranks (vm_ranks.c) */
/* Call before a strong access of a ranked warp: gives the warp a stamp with the reach of the
 * access. `passes`: the access overwrites a message to other ranks, and so passes it on. */
void vm_rank_reach(vm_warp *w, const ptx_insn *ip, bool passes);
/* True if the accesses of that stamp reach the warp's rank, and those of the warp's present stamp
 * the other rank. */
bool vm_rank_meets(const vm_warp *w, uint32_t stamp);
/* True if a write with that stamp releases the writer's earlier accesses to the warp. */
bool vm_rank_tells(const vm_warp *w, uint32_t stamp);
/* True if a warp of another rank has that stamp. */
bool vm_rank_is_peer(const vm_warp *w, uint32_t stamp);
/* Names the owner of a stamp: "warp 1 of block 0 of rank 2". True: the owner is of another rank. */
bool vm_rank_name(const vm_warp *w, uint32_t stamp, char *text, size_t bytes);

/* ---- ranks that begin and end apart (vm_apart.c) */
/* The warp reads a flag of that stamp by an access of scope .sys; a flag of a peer that releases
 * what came before it is a message. */
void vm_apart_hear(vm_warp *w, uint32_t stamp);
/* The same of any strong write: it tells of itself. */
void vm_apart_see(vm_warp *w, uint32_t stamp);
/* Whether the lane may read what a peer may have from before its launch; false after a trap. */
bool vm_apart_readable(vm_warp *w, const ptx_insn *ip, unsigned lane, uint64_t address,
                       vm_buffer_kind kind, unsigned bytes);
/* Whether the lane's write comes before the end of the peer whose memory it is; false after a trap.
 */
bool vm_apart_writable(vm_warp *w, const ptx_insn *ip, unsigned lane, uint64_t address,
                       unsigned bytes);

/* ---- launches of ranks that follow each other (vm_stream.c) */
/* Whether an access with that stamp is of an earlier launch, and ordered before the warp's launch.
 */
bool vm_stream_knew(const vm_warp *w, uint32_t stamp);

void vm_race_barrier(vm_block *b, unsigned id);

#endif
