/* Frames: registers, constants and call parameters of a function for one warp; calls and returns.
 *
 * Lanes of a frame may come from different callers, so each lane remembers where it returns to. A
 * frame is given back when its last lane has left. */
#include "fitness/vm/vm_frame.h"

#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH 1024
#define MAX_LOCAL (512u << 10) /* bytes a thread, as on the chip */

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

static void fill_consts(const vm_state *s, const ptx_func *f, uint8_t *regs) {
    for (size_t i = 0; i < f->const_count; i++) {
        const ptx_const *c = &f->consts[i];
        uint64_t base = c->base == PTX_BASE_GLOBAL    ? s->globals
                        : c->base == PTX_BASE_DYNAMIC ? s->module->dynamic_base
                                                      : 0;
        fill_lanes(regs + c->slot, c->bits, c->value + base);
    }
}

static uint64_t lane_sreg(const vm_warp *w, ptx_sreg sreg, unsigned lane) {
    const uint32_t *n = w->state->launch->block;
    uint32_t thread = w->index * VM_LANES + lane;
    switch (sreg) {
    case PTX_SR_TID_X:
        return thread % n[0];
    case PTX_SR_TID_Y:
        return thread / n[0] % n[1];
    case PTX_SR_TID_Z:
        return thread / n[0] / n[1];
    case PTX_SR_LANEID:
        return lane;
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
        return vm_sreg_read(w, sreg);
    }
}

static void fill_sregs(const vm_warp *w, const ptx_func *f, uint8_t *regs) {
    for (size_t i = 0; i < f->sreg_count; i++) {
        const ptx_sreg_use *u = &f->sregs[i];
        for (unsigned lane = 0; lane < VM_LANES; lane++) {
            uint64_t v = lane_sreg(w, u->sreg, lane);
            if (ptx_sreg_bits(u->sreg) == 64)
                ((uint64_t *)(void *)(regs + u->slot))[lane] = v;
            else
                ((uint32_t *)(void *)(regs + u->slot))[lane] = (uint32_t)v;
        }
    }
}

static uint64_t cycles(const vm_warp *w) {
    return w->block->instructions + 1000;
}

uint64_t vm_sreg_read(const vm_warp *w, ptx_sreg sreg) {
    const vm_state *s = w->state;
    const uint32_t *n = s->launch->block, *g = s->launch->grid, *id = w->block->id;
    uint64_t now = s->result->counters.thread_instructions / VM_LANES;
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
        return s->entry->pub.shared_bytes + s->launch->dynamic_shared;
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
        return 1; /* no cluster launch: each block is a cluster of its own */
    case PTX_SR_CLOCK:
    case PTX_SR_CLOCK64:
        return cycles(w) + now;
    case PTX_SR_CLOCK_HI:
        return (cycles(w) + now) >> 32;
    case PTX_SR_GLOBALTIMER:
    case PTX_SR_GLOBALTIMER_LO:
        return now;
    case PTX_SR_GLOBALTIMER_HI:
        return now >> 32;
    default:
        return 0;
    }
}

/* A frame of the function: registers zero, constants in place. NULL when memory runs out. */
vm_frame *vm_frame_take(vm_warp *w, uint32_t func) {
    vm_state *s = w->state;
    const ptx_func *f = &s->module->funcs[func];
    vm_frame *frame = s->pools[func];
    if (frame) {
        s->pools[func] = frame->next;
    } else {
        frame = calloc(1, sizeof *frame);
        size_t bytes = (f->frame_bytes + 127u) & ~63u;
        if (frame)
            frame->regs = aligned_alloc(64, bytes);
        if (!frame || !frame->regs) {
            free(frame);
            s->out_of_memory = true;
            return NULL;
        }
        frame->next_made = s->frames;
        s->frames = frame;
    }
    memset(frame->regs, 0, f->frame_bytes);
    fill_consts(s, f, frame->regs);
    fill_sregs(w, f, frame->regs);
    frame->func = func;
    frame->depth = 0;
    frame->lanes = 0;
    frame->local_base = 0;
    frame->local_top = f->local_bytes;
    return frame;
}

void vm_frame_give(vm_state *s, vm_frame *frame) {
    frame->next = s->pools[frame->func];
    s->pools[frame->func] = frame;
}

void vm_frames_free(vm_state *s) {
    while (s->frames) {
        vm_frame *frame = s->frames;
        s->frames = frame->next_made;
        free(frame->regs);
        free(frame);
    }
}

/* Local memory of all lanes grows to at least `bytes` each; what stands in it stays. */
bool vm_local_grow(vm_warp *w, uint64_t bytes) {
    if (bytes <= w->local_capacity)
        return true;
    uint64_t wanted = (bytes + bytes / 2 + 63) / 64 * 64;
    uint8_t *bigger = calloc(VM_LANES, wanted);
    uint64_t *written = calloc(VM_LANES, wanted / 8);
    if (!bigger || !written) {
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

static void copy_values(const ptx_copy *list, size_t count, const uint8_t *from, uint8_t *to,
                        uint32_t mask) {
    for (size_t k = 0; k < count; k++)
        for (uint32_t left = mask; left; left &= left - 1) {
            unsigned i = (unsigned)__builtin_ctz(left);
            memcpy(to + list[k].to + i * list[k].to_stride,
                   from + list[k].from + i * list[k].from_stride, list[k].bytes);
        }
}

bool vm_frame_call(vm_warp *w, const ptx_insn *ip, uint32_t mask) {
    const vm_module *m = w->state->module;
    const ptx_call *call = &m->calls[ip->target];
    const ptx_func *f = &m->funcs[call->func];
    vm_frame *caller = w->frame;
    uint64_t base = (caller->local_top + 15) & ~15ull;
    if (caller->depth + 1 >= MAX_DEPTH || base + f->local_bytes > MAX_LOCAL) {
        vm_trap_raise(w, ip, VM_TRAP_STACK_OVERFLOW, (unsigned)__builtin_ctz(mask), NULL,
                      "call of '%s' at depth %u with %llu bytes of local memory in use", f->name,
                      caller->depth + 1, (unsigned long long)base);
        return false;
    }
    vm_frame *frame = vm_frame_take(w, call->func);
    if (!frame || !vm_local_grow(w, base + f->local_bytes))
        return false;
    frame->depth = caller->depth + 1;
    frame->lanes = mask;
    frame->local_base = base;
    frame->local_top = base + f->local_bytes;
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        frame->ret_pc[i] = (uint32_t)(ip - w->code) + 1;
        frame->parent[i] = caller;
        uint64_t at = i * w->local_capacity + base; /* what an earlier call left is not ours */
        for (uint64_t b = at; b < at + f->local_bytes; b++)
            w->local_written[b >> 6] &= ~(1ull << (b & 63));
    }
    copy_values(call->args, call->arg_count, caller->regs, frame->regs, mask);
    w->frame = frame;
    w->regs = frame->regs;
    w->pc = f->pub.first_pc;
    return true;
}

/* Lanes of `frame` are gone, here and in all frames below. */
void vm_frame_leave(vm_state *s, vm_frame *frame, uint32_t mask) {
    frame->lanes &= ~mask;
    if (!frame->lanes)
        vm_frame_give(s, frame);
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
        copy_values(call->rets, call->ret_count, frame->regs, parent->regs, same);
        vm_set_push(w, same, pc, parent);
        mask &= ~same;
    }
    vm_frame_leave(w->state, frame, all);
    return true;
}

void vm_lanes_exit(vm_warp *w, uint32_t mask) {
    w->live &= ~mask;
    w->block->live_threads -= (uint32_t)__builtin_popcount(mask);
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        vm_frame *frame = w->frame;
        while (frame) {
            vm_frame *parent = frame->depth ? frame->parent[i] : NULL;
            vm_frame_leave(w->state, frame, 1u << i);
            frame = parent;
        }
    }
}
