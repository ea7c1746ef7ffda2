/* Frames: registers, constants and call parameters of a function for one warp; calls and returns.
 *
 * A register is an array over the 32 lanes, and a lane is in one frame at a time. So all lanes of
 * a warp that are in the same function at the same call depth share one frame, wherever they were
 * called from (`frame_at`). Each lane of the frame remembers its own caller, return address and
 * base in local memory. Lanes from different call sites thus run and reconverge as one set inside
 * the callee. A frame returns to its function's pool when its last lane has left.
 *
 * A call (PTX ISA, "Abstracting the ABI") copies parameters from the caller's slots to the
 * callee's, and a return copies results back. A parameter whose address the function takes is also
 * copied to the lane's local memory, which is a stack of at most MAX_LOCAL bytes. A new frame
 * clears only those registers that may be read before they are written; the loader lists them.
 * Constants, and the special registers that the function reads, are written into slots of the
 * frame once, so that the executor reads all operands alike. */
#include "fitness/vm/vm_frame.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH 1024
#define MAX_LOCAL (512u << 10) /* bytes a thread, as on the chip */
#define SHARED_UNIT 128ul      /* bytes: shared memory comes in multiples, from sm_80 on */

static void fill_lanes(uint8_t *slot, unsigned bits, uint64_t value) {
    if (bits == 1)
        *(uint32_t *)(void *)slot = (uint32_t)value;
    else if (bits == 64)
        for (unsigned i = 0; i < VM_LANES; i++)
            ((uint64_t *)(void *)slot)[i] = value;
    else
        for (unsigned i = 0; i < VM_LANES; i++)
            ((uint32_t *)(void *)slot)[i] = (uint32_t)value;
}

/* `all`: not only predicates. */
static void fill_consts(const vm_state *s, const ptx_func *f, bool all, uint8_t *regs) {
    for (size_t i = 0; i < f->const_count; i++) {
        const ptx_const *c = &f->consts[i];
        if (!all && c->bits != 1)
            continue;
        uint64_t base = 0;
        if (c->base == PTX_BASE_GLOBAL)
            base = s->globals;
        else if (c->base == PTX_BASE_DYNAMIC)
            base = s->module->dynamic_base;
        fill_lanes(regs + c->slot, c->bits, c->value + base);
    }
}

/* Indices in the block of the warp's threads, which follow one another along x, then y, then z. */
static void thread_indices(const vm_warp *w, ptx_sreg sreg, uint32_t *out) {
    const uint32_t *n = w->state->launch->block;
    uint32_t first = w->index * VM_LANES;
    uint32_t at[3] = {first % n[0], first / n[0] % n[1], first / n[0] / n[1]};
    for (unsigned lane = 0; lane < VM_LANES; lane++) {
        out[lane] = at[sreg - PTX_SR_TID_X];
        if (++at[0] < n[0])
            continue;
        at[0] = 0;
        if (++at[1] == n[1]) {
            at[1] = 0;
            at[2]++;
        }
    }
}

static uint32_t lane_mask(ptx_sreg sreg, unsigned lane) {
    switch (sreg) {
    case PTX_SR_LANEMASK_EQ:
        return 1u << lane;
    case PTX_SR_LANEMASK_LE:
        return (2u << lane) - 1u;
    case PTX_SR_LANEMASK_LT:
        return (1u << lane) - 1u;
    case PTX_SR_LANEMASK_GE:
        return ~((1u << lane) - 1u);
    case PTX_SR_LANEMASK_GT:
        return ~((2u << lane) - 1u);
    default:
        return lane;
    }
}

static void fill_sregs(const vm_warp *w, const ptx_func *f, uint8_t *regs) {
    for (size_t i = 0; i < f->sreg_count; i++) {
        const ptx_sreg_use *u = &f->sregs[i];
        uint32_t *lanes = (uint32_t *)(void *)(regs + u->slot);
        switch (u->sreg) {
        case PTX_SR_TID_X:
        case PTX_SR_TID_Y:
        case PTX_SR_TID_Z:
            thread_indices(w, u->sreg, lanes);
            break;
        case PTX_SR_LANEID:
        case PTX_SR_LANEMASK_EQ:
        case PTX_SR_LANEMASK_LE:
        case PTX_SR_LANEMASK_LT:
        case PTX_SR_LANEMASK_GE:
        case PTX_SR_LANEMASK_GT:
            for (unsigned lane = 0; lane < VM_LANES; lane++)
                lanes[lane] = lane_mask(u->sreg, lane);
            break;
        default:
            fill_lanes(regs + u->slot, ptx_sreg_bits(u->sreg), vm_sreg_read(w, u->sreg));
        }
    }
}

/* Since the launch began: warp instructions of all blocks, which stand for nanoseconds. */
static uint64_t ticks(const vm_state *s) {
    return s->result->counters.thread_instructions / VM_LANES;
}

static uint64_t cycles(const vm_warp *w) {
    const vm_state *s = w->state;
    return s->launch->clock_cycles + w->block->instructions + 1000 + ticks(s);
}

static uint64_t nanoseconds(const vm_state *s) {
    uint64_t now = s->launch->timer_ns + ticks(s), grain = s->launch->timer_grain;
    return grain > 1 ? now - now % grain : now;
}

/* Of grid-wide barriers: every launch is as a cooperative one. */
static uint64_t workspace(const vm_state *s) {
    return s->module->workspace ? s->globals + s->module->workspace - 1 : 0;
}

uint64_t vm_sreg_read(const vm_warp *w, ptx_sreg sreg) {
    const vm_state *s = w->state;
    const uint32_t *n = s->launch->block, *g = s->launch->grid, *id = w->block->id;
    switch (sreg) {
    case PTX_SR_NTID_X:
    case PTX_SR_NTID_Y:
    case PTX_SR_NTID_Z:
        return n[sreg - PTX_SR_NTID_X];
    case PTX_SR_CTAID_X:
    case PTX_SR_CTAID_Y:
    case PTX_SR_CTAID_Z:
        return id[sreg - PTX_SR_CTAID_X];
    case PTX_SR_NCTAID_X:
    case PTX_SR_NCTAID_Y:
    case PTX_SR_NCTAID_Z:
        return g[sreg - PTX_SR_NCTAID_X];
    case PTX_SR_WARPID:
        return w->index;
    case PTX_SR_NWARPID:
        return w->block->warp_count;
    case PTX_SR_SMID:
        return w->block->linear % VM_SM_COUNT;
    case PTX_SR_NSMID:
        return VM_SM_COUNT;
    case PTX_SR_DYNAMIC_SMEM:
        return s->launch->dynamic_shared;
    case PTX_SR_TOTAL_SMEM:
        return (s->entry->pub.shared_bytes + s->launch->dynamic_shared + SHARED_UNIT - 1) /
               SHARED_UNIT * SHARED_UNIT;
    case PTX_SR_RESERVED_BEGIN:
    case PTX_SR_RESERVED_0:
    case PTX_SR_RESERVED_1:
        return s->module->reserved_shared;
    case PTX_SR_RESERVED_END:
    case PTX_SR_RESERVED_CAP:
        return s->module->reserved_shared + PTX_RESERVED_BYTES;
    case PTX_SR_CLUSTERID_X:
    case PTX_SR_CLUSTERID_Y:
    case PTX_SR_CLUSTERID_Z:
        return id[sreg - PTX_SR_CLUSTERID_X];
    case PTX_SR_NCLUSTERID_X:
    case PTX_SR_NCLUSTERID_Y:
    case PTX_SR_NCLUSTERID_Z:
        return g[sreg - PTX_SR_NCLUSTERID_X];
    case PTX_SR_CLUSTER_NCTAID_X:
    case PTX_SR_CLUSTER_NCTAID_Y:
    case PTX_SR_CLUSTER_NCTAID_Z:
    case PTX_SR_CLUSTER_NCTARANK:
        return 1;        /* no cluster launch: each block is a cluster of its own */
    case PTX_SR_ENVREG1: /* the others hold nothing that a kernel of today reads */
        return workspace(s) >> 32;
    case PTX_SR_ENVREG2:
        return workspace(s) & UINT32_MAX;
    case PTX_SR_CLOCK:
    case PTX_SR_CLOCK64:
        w->state->happenings++;
        return cycles(w);
    case PTX_SR_CLOCK_HI:
        w->state->happenings++;
        return cycles(w) >> 32;
    case PTX_SR_GLOBALTIMER:
    case PTX_SR_GLOBALTIMER_LO:
        w->state->happenings++;
        return nanoseconds(s);
    case PTX_SR_GLOBALTIMER_HI:
        w->state->happenings++;
        return nanoseconds(s) >> 32;
    default:
        return 0;
    }
}

/* Initial bytes of a new frame. Uncleared registers never reach a result, but livelock detection
 * hashes whole frames, so the bytes may not depend on an earlier launch. */
#define FRAME_FILL (VM_SANITIZED ? 0xa5 : 0)

static vm_frame *frame_new(vm_state *s, const ptx_func *f) {
    vm_frame *frame = calloc(1, sizeof *frame);
    if (frame)
        frame->regs = vm_spare_take(&s->spare, (f->frame_bytes + 127u) & ~63u);
    if (!frame || !frame->regs) {
        free(frame);
        s->out_of_memory = true;
        return NULL;
    }
    frame->next_made = s->frames;
    s->frames = frame;
    memset(frame->regs, FRAME_FILL, f->frame_bytes);
    fill_consts(s, f, true, frame->regs);
    return frame;
}

/* What is left is written before it is read, or nothing writes it. Where not all is cleared,
 * constants stay, but for predicates. */
static void frame_clear(const vm_state *s, const ptx_func *f, const vm_frame *frame) {
    if (frame->undefined)
        memset(frame->undefined, 0, f->frame_bytes);
    for (size_t i = 0; i < f->cleared_count; i++)
        memset(frame->regs + f->cleared[i].offset, 0, f->cleared[i].bytes);
    bool all = f->cleared_count == 1 && f->cleared[0].bytes == f->frame_bytes;
    fill_consts(s, f, all, frame->regs);
}

/* A frame of the function: registers zero where they may be read before they are written, constants
 * in place. NULL when memory runs out. */
vm_frame *vm_frame_take(vm_warp *w, uint32_t func) {
    vm_state *s = w->state;
    const ptx_func *f = &s->module->funcs[func];
    vm_frame *frame = s->pools[func];
    if (frame)
        s->pools[func] = frame->next;
    else
        frame = frame_new(s, f);
    if (!frame)
        return NULL;
    frame_clear(s, f, frame);
    fill_sregs(w, f, frame->regs);
    frame->func = func;
    frame->depth = 0;
    frame->lanes = 0;
    frame->local_least = f->local_bytes;
    for (unsigned i = 0; i < VM_LANES; i++) {
        frame->local_base[i] = 0;
        frame->local_top[i] = f->local_bytes;
    }
    return frame;
}

void vm_frames_free(vm_state *s) {
    while (s->frames) {
        vm_frame *frame = s->frames;
        s->frames = frame->next_made;
        free(frame->undefined);
        free(frame);
    }
}

/* The undefined bits of local memory, if they travel, before it has `wanted` bytes a lane. */
static bool grow_undefined(vm_warp *w, uint64_t wanted) {
    if (!w->state->undefined_code)
        return true;
    uint8_t *bigger = calloc(VM_LANES, wanted);
    for (unsigned i = 0; bigger && w->local_undefined && i < VM_LANES; i++)
        memcpy(bigger + i * wanted, w->local_undefined + i * w->local_capacity, w->local_capacity);
    free(w->local_undefined);
    w->local_undefined = bigger;
    return bigger != NULL;
}

/* Local memory of all lanes grows to at least `bytes` each; what stands in it stays. */
bool vm_local_grow(vm_warp *w, uint64_t bytes) {
    w->local_used = bytes > w->local_used ? bytes : w->local_used;
    if (bytes <= w->local_capacity)
        return true;
    uint64_t wanted = (bytes + bytes / 2 + 63) / 64 * 64;
    uint8_t *bigger = calloc(VM_LANES, wanted);
    uint64_t *written = calloc(VM_LANES, wanted / 8);
    if (!bigger || !written || !grow_undefined(w, wanted)) {
        free(bigger);
        free(written);
        w->state->out_of_memory = true;
        return false;
    }
    for (unsigned i = 0; i < VM_LANES && w->local; i++) {
        memcpy(bigger + i * wanted, w->local + i * w->local_capacity, w->local_capacity);
        memcpy(written + i * wanted / 64, w->local_written + i * w->local_capacity / 64,
               w->local_capacity / 8);
    }
    free(w->local);
    free(w->local_written);
    w->local = bigger;
    w->local_written = written;
    w->local_capacity = wanted;
    return true;
}

void vm_local_forget(vm_warp *w, unsigned lane, uint64_t at, uint64_t bytes) {
    uint64_t b = lane * w->local_capacity + at, end = b + bytes;
    while (b < end) {
        uint64_t n = 64 - (b & 63) < end - b ? 64 - (b & 63) : end - b;
        uint64_t bits = n == 64 ? UINT64_MAX : ((1ull << n) - 1) << (b & 63);
        w->local_written[b >> 6] &= ~bits;
        b += n;
    }
}

/* Moves a value between a slot of one frame and a slot of another. */
static void copy_value(const uint8_t *from, uint32_t from_stride, uint8_t *to, uint32_t to_stride,
                       uint32_t bytes, uint32_t mask) {
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        const uint8_t *source = from + (size_t)i * from_stride;
        uint8_t *place = to + (size_t)i * to_stride;
        if (bytes == 4 && to_stride == 4) {
            memcpy(place, source, 4);
        } else if (bytes == 8) {
            memcpy(place, source, 8);
        } else {
            if (to_stride <= 8) /* a register: no bits above the value */
                memset(place, 0, to_stride);
            memcpy(place, source, bytes);
        }
    }
}

static void give_args(const ptx_call *call, const ptx_func *f, const uint8_t *caller,
                      uint8_t *callee, uint32_t mask) {
    for (size_t i = 0; i < call->arg_count; i++) {
        const ptx_value *v = &call->args[i];
        const ptx_var *p = &f->sig.params[i];
        copy_value(caller + v->slot, v->stride, callee + p->offset, p->stride, v->bytes, mask);
    }
}

/* Whether undefined bits go from one frame to the other, or have to be overwritten there. */
static bool undefined_pass(vm_state *s, vm_frame *a, vm_frame *b) {
    return s->undefined_code && (a->undefined || b->undefined) && vm_undefined_frame(s, a) &&
           vm_undefined_frame(s, b);
}

static void give_results(const ptx_call *call, const ptx_func *f, const uint8_t *callee,
                         uint8_t *caller, uint32_t mask) {
    for (size_t i = 0; i < call->ret_count; i++) {
        const ptx_value *v = &call->rets[i];
        const ptx_var *p = &f->sig.rets[i];
        if (v->slot != PTX_NONE)
            copy_value(callee + p->offset, p->stride, caller + v->slot, v->stride, v->bytes, mask);
    }
}

/* Parameters whose address the function takes live in its local memory as well. */
static void copy_to_local(vm_warp *w, const ptx_func *f, const vm_frame *frame, uint32_t mask) {
    for (size_t k = 0; k < f->sig.param_count; k++) {
        const ptx_var *p = &f->sig.params[k];
        if (!p->local)
            continue;
        for (uint32_t left = mask; left; left &= left - 1) {
            unsigned i = (unsigned)__builtin_ctz(left);
            uint64_t at = i * w->local_capacity + frame->local_base[i] + p->local - 1;
            memcpy(w->local + at, frame->regs + p->offset + (size_t)i * p->stride, p->bytes);
            if (w->local_undefined)
                memset(w->local_undefined + at, 0, p->bytes);
            if (w->local_undefined && frame->undefined)
                memcpy(w->local_undefined + at,
                       frame->undefined + p->offset + (size_t)i * p->stride, p->bytes);
            for (uint64_t b = at; b < at + p->bytes; b++)
                w->local_written[b >> 6] |= 1ull << (b & 63);
        }
    }
}

/* The warp's frame of the function at the depth: one that other lanes are in, or a new one. */
static vm_frame *frame_at(vm_warp *w, uint32_t func, uint32_t depth) {
    if (depth >= w->level_count) {
        size_t wanted = depth + 8u;
        vm_frame **bigger = realloc(w->levels, wanted * sizeof *bigger);
        if (!bigger) {
            w->state->out_of_memory = true;
            return NULL;
        }
        memset(bigger + w->level_count, 0, (wanted - w->level_count) * sizeof *bigger);
        w->levels = bigger;
        w->level_count = wanted;
    }
    for (vm_frame *f = w->levels[depth]; f; f = f->next_level)
        if (f->func == func)
            return f;
    vm_frame *frame = vm_frame_take(w, func);
    if (!frame)
        return NULL;
    frame->depth = depth;
    frame->local_least = UINT32_MAX;
    frame->next_level = w->levels[depth];
    w->levels[depth] = frame;
    return frame;
}

static uint64_t stack_base(const vm_frame *caller, const ptx_func *f, unsigned lane) {
    uint64_t align = f->local_align > 16 ? f->local_align : 16;
    return (caller->local_top[lane] + align - 1) & ~(align - 1);
}

/* Room on the stacks of all lanes that enter; false: trap. */
static bool stack_room(vm_warp *w, const ptx_insn *ip, const ptx_func *f, uint32_t mask) {
    uint64_t most = 0;
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        uint64_t base = stack_base(w->frame, f, i);
        if (w->frame->depth + 1 >= MAX_DEPTH || base + f->local_bytes > MAX_LOCAL) {
            vm_trap_raise(w, ip, VM_TRAP_STACK_OVERFLOW, i, NULL,
                          "call of '%s' at depth %u with %llu bytes of local memory in use; a "
                          "thread has %u calls and %u bytes",
                          f->name, w->frame->depth + 1, (unsigned long long)base, MAX_DEPTH,
                          MAX_LOCAL);
            return false;
        }
        most = base + f->local_bytes > most ? base + f->local_bytes : most;
    }
    return vm_local_grow(w, most);
}

/* The lanes of `mask` go from the current frame into a function; NULL: trap or out of memory. */
static vm_frame *enter(vm_warp *w, const ptx_insn *ip, uint32_t func, uint32_t mask) {
    const vm_module *m = w->state->module;
    const ptx_func *f = &m->funcs[func];
    vm_frame *caller = w->frame;
    if (!stack_room(w, ip, f, mask))
        return NULL;
    vm_frame *frame = frame_at(w, func, caller->depth + 1);
    if (!frame)
        return NULL;
    frame->lanes |= mask;
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        uint32_t base = (uint32_t)stack_base(caller, f, i);
        frame->ret_pc[i] = (uint32_t)(ip - w->code) + 1;
        frame->parent[i] = caller;
        frame->local_base[i] = base;
        frame->local_top[i] = base + f->local_bytes;
        if (frame->local_top[i] < frame->local_least)
            frame->local_least = frame->local_top[i];
        vm_local_forget(w, i, base, f->local_bytes); /* what an earlier call left is not ours */
    }
    give_args(&m->calls[ip->target], f, caller->regs, frame->regs, mask);
    if (undefined_pass(w->state, caller, frame))
        give_args(&m->calls[ip->target], f, caller->undefined, frame->undefined, mask);
    copy_to_local(w, f, frame, mask);
    return frame;
}

/* ---- calls through a register */

static void describe_signature(const ptx_signature *sig, char *text, size_t size) {
    size_t used = (size_t)snprintf(text, size, "(");
    for (size_t i = 0; i < sig->param_count && used < size; i++)
        used +=
            (size_t)snprintf(text + used, size - used, "%s%u", i ? ", " : "", sig->params[i].bytes);
    if (used < size)
        used += (size_t)snprintf(text + used, size - used, ") gives (");
    for (size_t i = 0; i < sig->ret_count && used < size; i++)
        used +=
            (size_t)snprintf(text + used, size - used, "%s%u", i ? ", " : "", sig->rets[i].bytes);
    if (used < size)
        (void)snprintf(text + used, size - used, ")");
}

static bool refuse_call(vm_warp *w, const ptx_insn *ip, unsigned lane, uint64_t value,
                        uint32_t func) {
    const vm_module *m = w->state->module;
    const ptx_call *call = &m->calls[ip->target];
    if (func == PTX_NONE) {
        vm_trap_raise(w, ip, VM_TRAP_BAD_CALL, lane, NULL,
                      "a call through 0x%llx, which is no function's address",
                      (unsigned long long)value);
        return false;
    }
    const ptx_func *f = &m->funcs[func];
    char has[120], wants[120];
    describe_signature(&f->sig, has, sizeof has);
    describe_signature(call->sig, wants, sizeof wants);
    if (f->entry || !f->defined)
        vm_trap_raise(w, ip, VM_TRAP_BAD_CALL, lane, NULL, "a call of '%s', which %s", f->name,
                      f->entry ? "is an entry" : "has no body");
    else if (strcmp(has, wants) != 0)
        vm_trap_raise(w, ip, VM_TRAP_BAD_CALL, lane, NULL,
                      "a call of '%s' with bytes %s through a prototype with %s", f->name, has,
                      wants);
    else
        vm_trap_raise(w, ip, VM_TRAP_BAD_CALL, lane, NULL,
                      "a call of '%s', which is none of the %zu functions of .calltargets", f->name,
                      call->target_count);
    return false;
}

static bool may_call(const vm_module *m, const ptx_call *call, uint32_t func) {
    if (func == PTX_NONE)
        return false;
    const ptx_func *f = &m->funcs[func];
    if (f->entry || !f->defined || !ptx_signatures_agree(&f->sig, call->sig))
        return false;
    bool listed = !call->targets;
    for (size_t i = 0; call->targets && i < call->target_count; i++)
        listed |= ptx_func_resolve(m, call->targets[i]) == func;
    return listed;
}

static uint32_t pointed_at(const vm_module *m, uint64_t value) {
    uint32_t func = ptx_func_at(m, value);
    return func == PTX_NONE ? func : ptx_func_resolve(m, func);
}

/* Lanes part by the function they call; those of the last one stay the current set. */
static bool call_indirect(vm_warp *w, const ptx_insn *ip, uint32_t mask) {
    const vm_module *m = w->state->module;
    const ptx_call *call = &m->calls[ip->target];
    vm_frame *caller = w->frame;
    const uint64_t *pointers = (const uint64_t *)(const void *)(caller->regs + call->pointer);
    while (mask) {
        unsigned first = (unsigned)__builtin_ctz(mask);
        uint64_t value = pointers[first];
        uint32_t func = pointed_at(m, value), same = 0;
        if (!may_call(m, call, func))
            return refuse_call(w, ip, first, value, func);
        for (uint32_t left = mask; left; left &= left - 1) {
            unsigned i = (unsigned)__builtin_ctz(left);
            same |= (uint32_t)(pointers[i] == value) << i;
        }
        w->frame = caller;
        vm_frame *frame = enter(w, ip, func, same);
        if (!frame)
            return false;
        mask &= ~same;
        if (mask)
            vm_set_push(w, same, m->funcs[func].pub.first_pc, frame);
        w->frame = frame;
        w->mask = same;
        w->pc = m->funcs[func].pub.first_pc;
    }
    return true;
}

bool vm_frame_call(vm_warp *w, const ptx_insn *ip, uint32_t mask) {
    const vm_module *m = w->state->module;
    uint32_t func = m->calls[ip->target].func;
    if (func == PTX_NONE)
        return call_indirect(w, ip, mask);
    vm_frame *frame = enter(w, ip, func, mask);
    if (!frame)
        return false;
    w->frame = frame;
    w->pc = m->funcs[func].pub.first_pc;
    return true;
}

static void unlink_level(vm_warp *w, vm_frame *frame) {
    if (!frame->depth)
        return;
    vm_frame **link = &w->levels[frame->depth];
    while (*link != frame)
        link = &(*link)->next_level;
    *link = frame->next_level;
}

void vm_frame_leave(vm_warp *w, vm_frame *frame, uint32_t mask) {
    frame->lanes &= ~mask;
    if (frame->lanes)
        return;
    unlink_level(w, frame);
    frame->next = w->state->pools[frame->func];
    w->state->pools[frame->func] = frame;
}

bool vm_frame_return(vm_warp *w, const ptx_insn *ip, uint32_t mask) {
    (void)ip;
    vm_frame *frame = w->frame;
    uint32_t all = mask;
    while (mask) {
        unsigned first = (unsigned)__builtin_ctz(mask);
        vm_frame *parent = frame->parent[first];
        uint32_t pc = frame->ret_pc[first], same = 0;
        for (uint32_t left = mask; left; left &= left - 1) {
            unsigned i = (unsigned)__builtin_ctz(left);
            same |= (uint32_t)(frame->parent[i] == parent && frame->ret_pc[i] == pc) << i;
        }
        const ptx_call *call = &w->state->module->calls[w->code[pc - 1].target];
        const ptx_func *f = &w->state->module->funcs[frame->func];
        give_results(call, f, frame->regs, parent->regs, same);
        if (undefined_pass(w->state, frame, parent))
            give_results(call, f, frame->undefined, parent->undefined, same);
        vm_set_push(w, same, pc, parent);
        mask &= ~same;
    }
    vm_frame_leave(w, frame, all);
    return true;
}

void vm_lanes_exit(vm_warp *w, uint32_t mask) {
    w->live &= ~mask;
    w->block->live_threads -= (uint32_t)__builtin_popcount(mask);
    if (w->frame->depth == 0) {
        vm_frame_leave(w, w->frame, mask);
        return;
    }
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        vm_frame *frame = w->frame;
        while (frame) {
            vm_frame *parent = frame->depth ? frame->parent[i] : NULL;
            vm_frame_leave(w, frame, 1u << i);
            frame = parent;
        }
    }
}

/* ---- the stack within a frame */

static void measure_stack(vm_frame *frame) {
    frame->local_least = UINT32_MAX;
    for (uint32_t left = frame->lanes; left; left &= left - 1) {
        uint32_t top = frame->local_top[__builtin_ctz(left)];
        frame->local_least = top < frame->local_least ? top : frame->local_least;
    }
}

static uint64_t lane_value(const vm_frame *frame, const ptx_insn *ip, unsigned lane) {
    const uint8_t *slot = frame->regs + ip->a;
    return ip->t == PTX_T_u64 ? ((const uint64_t *)(const void *)slot)[lane]
                              : ((const uint32_t *)(const void *)slot)[lane];
}

bool vm_frame_alloca(vm_warp *w, const ptx_insn *ip, uint32_t mask) {
    vm_frame *frame = w->frame;
    uint64_t align = ip->imm > 0 ? (uint64_t)ip->imm : 8;
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        uint64_t bytes = lane_value(frame, ip, i);
        uint64_t at = align > MAX_LOCAL ? align : (frame->local_top[i] + align - 1) / align * align;
        if (bytes > MAX_LOCAL || at + bytes > MAX_LOCAL) {
            vm_trap_raise(w, ip, VM_TRAP_STACK_OVERFLOW, i, NULL,
                          "alloca of %llu bytes with %u bytes of local memory in use; a thread has "
                          "%u bytes",
                          (unsigned long long)bytes, frame->local_top[i], MAX_LOCAL);
            return false;
        }
        if (!vm_local_grow(w, at + bytes))
            return false;
        vm_local_forget(w, i, at, bytes);
        frame->local_top[i] = (uint32_t)(at + bytes);
        if (ip->t == PTX_T_u64)
            ((uint64_t *)(void *)(frame->regs + ip->d))[i] = at;
        else
            ((uint32_t *)(void *)(frame->regs + ip->d))[i] = (uint32_t)at;
    }
    measure_stack(frame);
    return true;
}

bool vm_frame_stack_restore(vm_warp *w, const ptx_insn *ip, uint32_t mask) {
    vm_frame *frame = w->frame;
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        uint64_t to = lane_value(frame, ip, i);
        uint64_t least = frame->local_base[i] + w->state->module->funcs[frame->func].local_bytes;
        if (to < least || to > frame->local_top[i]) {
            vm_trap_raise(w, ip, VM_TRAP_OUT_OF_BOUNDS, i, &to,
                          "a stack pointer that stacksave did not give to this function, whose "
                          "stack is from %llu to %u",
                          (unsigned long long)least, frame->local_top[i]);
            return false;
        }
        frame->local_top[i] = (uint32_t)to;
    }
    measure_stack(frame);
    return true;
}
