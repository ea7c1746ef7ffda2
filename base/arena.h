/* Arena: memory for one unit of work (a parse, a candidate), freed in one go.
 *
 * Memory from an arena lives until ev_arena_reset or ev_arena_free. An arena is not thread-safe.
 * Functions that allocate return NULL when memory runs out. From then on ev_arena_failed returns
 * true, so a long construction may check once at its end. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct ev_arena ev_arena;

ev_arena *ev_arena_new(void);         /* NULL when memory runs out */
void ev_arena_free(ev_arena *arena);  /* NULL is fine */
void ev_arena_reset(ev_arena *arena); /* keeps the first block for reuse */
bool ev_arena_failed(const ev_arena *arena);
/* From now on the arena takes at most `bytes` from the system, those that it has included; an
 * allocation beyond that returns NULL, and ev_arena_is_full is true. SIZE_MAX: no limit. */
void ev_arena_limit(ev_arena *arena, size_t bytes);
bool ev_arena_is_full(const ev_arena *arena);
size_t ev_arena_bytes(const ev_arena *arena); /* handed out since the last reset */

void *ev_arena_alloc(ev_arena *arena, size_t bytes);              /* zeroed, aligned to 16 bytes */
void *ev_arena_array(ev_arena *arena, size_t count, size_t size); /* zeroed; checks the product */
void *ev_arena_copy(ev_arena *arena, const void *from, size_t bytes);
char *ev_arena_strdup(ev_arena *arena, const char *text);
char *ev_arena_strndup(ev_arena *arena, const char *text, size_t length);
char *ev_arena_printf(ev_arena *arena, const char *format, ...) EV_PRINTF(2, 3);

#define EV_NEW(arena, type) ((type *)ev_arena_alloc((arena), sizeof(type)))
#define EV_NEW_ARRAY(arena, type, count) ((type *)ev_arena_array((arena), (count), sizeof(type)))

#endif
