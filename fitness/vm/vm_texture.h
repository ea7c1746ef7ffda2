/* Inside of the virtual machine: what a handle of a kernel names, and the elements that a fetch
 * reads. */
#ifndef FITNESS_VM_VM_TEXTURE_H
#define FITNESS_VM_VM_TEXTURE_H

#include "fitness/vm/vm_exec.h"

#include <stdio.h>

/* A texture or surface with the sampler of this fetch. */
typedef struct vm_bound {
    const vm_texture *texture; /* NULL: a sampler alone */
    vm_sampler sampler;
} vm_bound;

/* What a handle, or the address of an opaque variable that holds one, names. False: nothing. */
bool vm_texture_find(const vm_state *s, uint64_t value, vm_bound *out);
/* The same for a sampler of its own. */
bool vm_sampler_find(const vm_state *s, uint64_t value, vm_sampler *out);
/* Drops what a sampler cannot do with the texture: integers that stay integers have no filter,
 * coordinates that count elements no repetition, and plain memory no border but zeros. */
void vm_sampler_settle(const vm_texture *t, vm_sampler *s);
/* Whether an instruction may use it: the text on why not, or NULL. */
const char *vm_texture_refuses(const ptx_insn *ip, const vm_texture *t);

static inline unsigned vm_texture_bytes(const vm_texture *t) {
    return (unsigned)ev_type_bytes(t->channel) * t->channels;
}

/* The elements that a fetch of one lane reads: 1, 2, 4 or 8; bit 0 of an index is a step in x, bit
 * 1 in y, bit 2 in z. */
#define VM_TEXELS 8
typedef struct vm_footprint {
    unsigned count;
    uint32_t inside;             /* bit i: element i is in memory; else it is the border */
    uint64_t address[VM_TEXELS]; /* of those inside */
    double weight[VM_TEXELS];
} vm_footprint;
/* `words`: PTX_AT_COUNT of them, coordinates and offsets. */
void vm_texture_place_lane(const ptx_insn *ip, const vm_bound *b, const uint32_t *words,
                           vm_footprint *out);
/* The results of a fetch, as registers hold them: four, or two pairs of halves. */
void vm_texture_blend(const ptx_insn *ip, const vm_bound *b, const vm_footprint *f,
                      const uint8_t texels[VM_TEXELS][16], uint32_t out[4]);

/* The address of a surface's bytes. False: nothing is there, and zero is read. *outside: that is a
 * trap. */
bool vm_surface_place(const ptx_insn *ip, const vm_texture *t, unsigned bytes,
                      const uint32_t *words, uint64_t *address, bool *outside);
/* A formatted store: the element as bytes. */
void vm_surface_format(const vm_texture *t, const uint32_t *words, unsigned count, uint8_t *out);

uint32_t vm_texture_query(uint8_t query, const vm_bound *b);

#endif
