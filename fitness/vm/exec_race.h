/* Races: which accesses are ordered, kept in two words of shadow a 4-byte word. */

static inline bool race_load(vm_warp *w, const ptx_insn *ip, const vm_access *x, uint32_t mask) {
    (void)w, (void)ip, (void)x, (void)mask;
    return true;
}
static inline bool race_store(vm_warp *w, const ptx_insn *ip, const uint8_t *regs,
                              const vm_access *x, uint32_t mask) {
    (void)w, (void)ip, (void)x, (void)mask, (void)regs;
    return true;
}
static inline bool race_atomic(vm_warp *w, const ptx_insn *ip, const vm_access *x, uint32_t mask) {
    (void)w, (void)ip, (void)x, (void)mask;
    return true;
}
static inline void race_sync_warp(vm_warp *w) {
    (void)w;
}
static inline void race_fence(vm_warp *w) {
    (void)w;
}
