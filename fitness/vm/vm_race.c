/* Races, the slow part: when accesses become ordered. */
#include "fitness/vm/vm_exec.h"

bool vm_race_begin(vm_state *s) {
    s->stamp = s->memory->stamp;
    return true;
}
void vm_race_end(vm_state *s) {
    s->memory->stamp = s->stamp;
}
void vm_race_block(vm_state *s, vm_block *b) {
    (void)s, (void)b;
}
void vm_race_warp(vm_warp *w) {
    (void)w;
}
void vm_race_barrier(vm_block *b, unsigned id) {
    (void)b, (void)id;
}
