/* The arena: a chain of blocks, filled from the newest. */
#include "base/arena.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ARENA_SANITIZED 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define ARENA_SANITIZED 1
#endif

/* Under the address sanitizer, what is not handed out is poisoned, and a gap follows every piece.
 */
#ifdef ARENA_SANITIZED
#include <sanitizer/asan_interface.h>
#define ARENA_GAP 16u
#define arena_hide(at, bytes) __asan_poison_memory_region((at), (bytes))
#define arena_show(at, bytes) __asan_unpoison_memory_region((at), (bytes))
#else
#define ARENA_GAP 0u
#define arena_hide(at, bytes) ((void)(at), (void)(bytes))
#define arena_show(at, bytes) ((void)(at), (void)(bytes))
#endif

#define ARENA_ALIGN 16u
#define ARENA_FIRST_BLOCK ((size_t)64 << 10)
#define ARENA_LARGEST_STEP ((size_t)8 << 20)

typedef struct arena_block {
    struct arena_block *older;
    size_t used;
    size_t size;
    _Alignas(ARENA_ALIGN) unsigned char data[];
} arena_block;

struct ev_arena {
    arena_block *newest;
    size_t handed_out;
    size_t taken, most; /* bytes of all blocks, and their limit */
    bool failed, is_full;
};

ev_arena *ev_arena_new(void) {
    ev_arena *arena = calloc(1, sizeof *arena);
    if (arena != NULL)
        arena->most = SIZE_MAX;
    return arena;
}

static void block_free(arena_block *block) {
    arena_show(block->data, block->size);
    free(block);
}

void ev_arena_free(ev_arena *arena) {
    if (arena == NULL)
        return;
    while (arena->newest != NULL) {
        arena_block *older = arena->newest->older;
        block_free(arena->newest);
        arena->newest = older;
    }
    free(arena);
}

void ev_arena_reset(ev_arena *arena) {
    arena_block *block = arena->newest;
    while (block != NULL && block->older != NULL) {
        arena_block *older = block->older;
        arena->taken -= block->size;
        block_free(block);
        block = older;
    }
    if (block != NULL) {
        block->used = 0;
        arena_hide(block->data, block->size);
    }
    arena->newest = block;
    arena->handed_out = 0;
}

bool ev_arena_failed(const ev_arena *arena) {
    return arena->failed;
}

size_t ev_arena_bytes(const ev_arena *arena) {
    return arena->handed_out;
}

void ev_arena_limit(ev_arena *arena, size_t bytes) {
    arena->most = bytes;
}

bool ev_arena_is_full(const ev_arena *arena) {
    return arena->is_full;
}

/* Blocks double up to ARENA_LARGEST_STEP; a piece larger than the step gets a block of its size. */
static arena_block *block_new(ev_arena *arena, size_t need) {
    size_t size = ARENA_FIRST_BLOCK;
    if (arena->newest != NULL && arena->newest->size >= ARENA_FIRST_BLOCK)
        size = arena->newest->size * 2;
    if (size > ARENA_LARGEST_STEP)
        size = ARENA_LARGEST_STEP;
    size_t left = arena->most - (arena->taken < arena->most ? arena->taken : arena->most);
    if (size > left)
        size = left;
    if (size < need)
        size = need;
    arena->is_full = arena->is_full || size > left;
    if (size > left)
        return NULL;
    arena_block *block = malloc(sizeof *block + size);
    if (block == NULL)
        return NULL;
    arena->taken += size;
    block->older = arena->newest;
    block->used = 0;
    block->size = size;
    arena_hide(block->data, size);
    return block;
}

/* Room for `bytes`, not cleared; NULL when memory runs out. */
static void *arena_take(ev_arena *arena, size_t bytes) {
    if (bytes > SIZE_MAX / 2) {
        arena->failed = true;
        return NULL;
    }
    size_t need = (bytes + ARENA_GAP + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1);
    if (need == 0)
        need = ARENA_ALIGN; /* even nothing has an address of its own */
    arena_block *block = arena->newest;
    if (block == NULL || block->size - block->used < need) {
        block = block_new(arena, need);
        if (block == NULL) {
            arena->failed = true;
            return NULL;
        }
        arena->newest = block;
    }
    void *at = block->data + block->used;
    block->used += need;
    arena->handed_out += bytes;
    arena_show(at, bytes);
    return at;
}

void *ev_arena_alloc(ev_arena *arena, size_t bytes) {
    void *at = arena_take(arena, bytes);
    return at == NULL ? NULL : memset(at, 0, bytes);
}

void *ev_arena_array(ev_arena *arena, size_t count, size_t size) {
    size_t bytes = 0;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        arena->failed = true;
        return NULL;
    }
    return ev_arena_alloc(arena, bytes);
}

void *ev_arena_copy(ev_arena *arena, const void *from, size_t bytes) {
    void *at = arena_take(arena, bytes);
    if (at != NULL && bytes > 0)
        memcpy(at, from, bytes);
    return at;
}

char *ev_arena_strndup(ev_arena *arena, const char *text, size_t length) {
    size_t real = strnlen(text, length);
    char *at = arena_take(arena, real + 1);
    if (at == NULL)
        return NULL;
    memcpy(at, text, real);
    at[real] = '\0';
    return at;
}

char *ev_arena_strdup(ev_arena *arena, const char *text) {
    return ev_arena_copy(arena, text, strlen(text) + 1);
}

char *ev_arena_printf(ev_arena *arena, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0) {
        arena->failed = true;
        return NULL;
    }
    size_t bytes = (size_t)length + 1;
    char *at = arena_take(arena, bytes);
    if (at == NULL)
        return NULL;
    va_start(args, format);
    (void)vsnprintf(at, bytes, format, args);
    va_end(args);
    return at;
}
