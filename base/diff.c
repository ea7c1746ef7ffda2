/* Diffs of two texts: lines and their keys, Myers' shortest script, unified hunks. */
#include "base/diff.h"

#include "base/arena.h"

#include <stdbool.h>
#include <string.h>

/* ---- lines ---- */

typedef struct text_lines {
    const char **at;
    uint32_t *length;
    uint64_t *key;
    int32_t count;
} text_lines;

/* FNV-1a. */
static uint64_t key_of_all(const char *line, size_t length) {
    uint64_t key = 0xcbf29ce484222325u;
    for (size_t i = 0; i < length; i++)
        key = (key ^ (unsigned char)line[i]) * 0x100000001b3u;
    return key;
}

static bool split_lines(ev_arena *arena, const char *text, const ev_diff_rules *rules,
                        text_lines *out) {
    size_t count = 0;
    for (const char *c = text; *c; c++)
        count += *c == '\n';
    out->at = EV_NEW_ARRAY(arena, const char *, count + 1);
    out->length = EV_NEW_ARRAY(arena, uint32_t, count + 1);
    out->key = EV_NEW_ARRAY(arena, uint64_t, count + 1);
    out->count = 0;
    if (!out->at || !out->length || !out->key)
        return false;
    for (const char *end; (end = strchr(text, '\n')) != NULL; text = end + 1) {
        size_t length = (size_t)(end - text);
        if (rules && rules->trim && (length = rules->trim(text, length)) == 0)
            continue;
        out->at[out->count] = text;
        out->length[out->count] = (uint32_t)length;
        out->key[out->count++] =
            rules && rules->key ? rules->key(text, length) : key_of_all(text, length);
    }
    return true;
}

static bool same_line(const text_lines *a, int32_t i, const text_lines *b, int32_t k) {
    return a->key[i] == b->key[k];
}

/* ---- Myers ---- */

typedef struct script {
    bool *gone;  /* by line of the old text */
    bool *fresh; /* by line of the new text */
} script;

/* Follows the saved frontiers back from the end and marks the lines that change. `trace[d]` has the
 * furthest x of diagonals -d .. d at [k + d]. */
static void mark_script(int32_t **trace, int32_t d, int32_t x, int32_t y, script *out) {
    for (; d > 0; d--) {
        const int32_t *before = trace[d - 1];
        int32_t k = x - y, middle = d - 1;
        bool down = k == -d ||
                    (k != d && k - 1 >= -middle && k + 1 <= middle &&
                     before[k - 1 + middle] < before[k + 1 + middle]) ||
                    (k != d && k - 1 < -middle);
        int32_t from = down ? k + 1 : k - 1;
        int32_t start = before[from + middle];
        int32_t stop = start - from;
        if (down)
            out->fresh[stop] = true;
        else
            out->gone[start] = true;
        x = start;
        y = stop;
    }
}

static bool compare_lines(ev_arena *arena, const text_lines *a, const text_lines *b, script *out) {
    int32_t most = a->count + b->count;
    int32_t **trace = EV_NEW_ARRAY(arena, int32_t *, (size_t)most + 1);
    out->gone = EV_NEW_ARRAY(arena, bool, (size_t)a->count + 1);
    out->fresh = EV_NEW_ARRAY(arena, bool, (size_t)b->count + 1);
    if (!trace || !out->gone || !out->fresh)
        return false;
    for (int32_t d = 0; d <= most; d++) {
        int32_t *now = trace[d] = EV_NEW_ARRAY(arena, int32_t, 2 * (size_t)d + 1);
        if (!now)
            return false;
        for (int32_t k = -d; k <= d; k += 2) {
            int32_t x = 0;
            if (d > 0) {
                const int32_t *before = trace[d - 1];
                int32_t below = k + 1 <= d - 1 ? before[k + 1 + d - 1] : -1;
                int32_t left = k - 1 >= -(d - 1) ? before[k - 1 + d - 1] + 1 : -1;
                x = k == -d || (k != d && left - 1 < below) ? below : left;
            }
            int32_t y = x - k;
            while (x < a->count && y < b->count && same_line(a, x, b, y))
                x++, y++;
            now[k + d] = x;
            if (x >= a->count && y >= b->count) {
                mark_script(trace, d, x, y, out);
                return true;
            }
        }
    }
    return false;
}

/* ---- unified ---- */

enum { CONTEXT = 3 };

/* The next change at or after (i, k), which run alongside; the end of both texts if there is none.
 */
static void skip_same(const text_lines *a, const script *s, int32_t *i, int32_t *k) {
    while (*i < a->count && !s->gone[*i] && !s->fresh[*k])
        (*i)++, (*k)++;
}

static void skip_change(const text_lines *a, const text_lines *b, const script *s, int32_t *i,
                        int32_t *k) {
    while (*i < a->count && s->gone[*i])
        (*i)++;
    while (*k < b->count && s->fresh[*k])
        (*k)++;
}

static void print_line(ev_str *out, char mark, const text_lines *text, int32_t at) {
    ev_str_char(out, mark);
    ev_str_append_n(out, text->at[at], text->length[at]);
    ev_str_char(out, '\n');
}

static void print_body(const text_lines *a, const text_lines *b, const script *s, int32_t i,
                       int32_t k, int32_t i_end, int32_t k_end, ev_str *out) {
    while (i < i_end || k < k_end) {
        if (i < i_end && s->gone[i])
            print_line(out, '-', a, i++);
        else if (k < k_end && s->fresh[k])
            print_line(out, '+', b, k++);
        else
            print_line(out, ' ', a, i++), k++;
    }
}

/* Changes closer than twice the context stand in one hunk. */
static void print_hunks(const text_lines *a, const text_lines *b, const script *s, ev_str *out) {
    int32_t i = 0, k = 0;
    for (skip_same(a, s, &i, &k); i < a->count || k < b->count;) {
        int32_t lead = i < CONTEXT ? i : CONTEXT;
        int32_t i_first = i - lead, k_first = k - lead;
        int32_t i_last, k_last;
        do {
            skip_change(a, b, s, &i, &k);
            i_last = i;
            k_last = k;
            skip_same(a, s, &i, &k);
        } while ((i < a->count || k < b->count) && i - i_last <= 2 * CONTEXT);
        int32_t tail = a->count - i_last < CONTEXT ? a->count - i_last : CONTEXT;
        if (i - i_last < tail)
            tail = i - i_last;
        i_last += tail;
        k_last += tail;
        ev_str_printf(out, "@@ -%d,%d +%d,%d @@\n", i_first + 1, i_last - i_first, k_first + 1,
                      k_last - k_first);
        print_body(a, b, s, i_first, k_first, i_last, k_last, out);
    }
}

ev_status ev_diff(const char *old_name, const char *old_text, const char *new_name,
                  const char *new_text, const ev_diff_rules *rules, ev_str *out, ev_error *err) {
    ev_arena *arena = ev_arena_new();
    text_lines a, b;
    script s;
    bool ok = arena && split_lines(arena, old_text, rules, &a) &&
              split_lines(arena, new_text, rules, &b) && compare_lines(arena, &a, &b, &s);
    if (ok) {
        ev_str_printf(out, "--- %s\n+++ %s\n", old_name, new_name);
        print_hunks(&a, &b, &s, out);
    }
    ev_arena_free(arena);
    return ok ? ev_str_status(out, err) : ev_fail_memory(err, strlen(old_text));
}
