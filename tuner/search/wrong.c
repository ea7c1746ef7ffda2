/* Wrong settings: what is noted of them, and their marks. */
#include "tuner/search/wrong.h"

#include "base/hash.h"
#include "base/str.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void wrong_free(wrong_list *w) {
    free(w->list);
    *w = (wrong_list){0};
}

static uint64_t mark_text(uint64_t mark, const char *text) {
    for (; *text; text++)
        mark = ev_mix64(mark ^ (unsigned char)*text);
    return ev_mix64(mark ^ UCHAR_MAX);
}

uint64_t wrong_mark(const ir_genome *genome) {
    uint64_t mark = mark_text(0, ir_genome_start(genome));
    for (size_t i = 0; i < ir_genome_macro_count(genome); i++)
        mark = ev_mix64(mark_text(mark, ir_genome_macro_name(genome, i)) ^
                        (uint64_t)ir_genome_macro_value(genome, i));
    return mark;
}

static bool is_start(const ir_genome *genome) {
    for (size_t i = 0; i < ir_genome_edit_count(genome); i++) {
        if (ir_genome_edit_kind(genome, i) != IR_EDIT_PIPELINE)
            return false;
    }
    return ir_genome_macro_count(genome) > 0;
}

bool wrong_holds(const wrong_list *w, const ir_genome *genome) {
    uint64_t mark = wrong_mark(genome);
    for (size_t i = 0; i < w->count; i++) {
        if (w->list[i].mark == mark)
            return true;
    }
    return false;
}

static void put_macros(const ir_genome *genome, char *text, size_t bytes) {
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < ir_genome_macro_count(genome) && used < bytes; i++)
        used += (size_t)snprintf(text + used, bytes - used, "%s%s=%" PRId64, i > 0 ? " " : "",
                                 ir_genome_macro_name(genome, i), ir_genome_macro_value(genome, i));
}

bool wrong_note(wrong_list *w, const ir_genome *genome, gate at, const char *reason) {
    if (!is_start(genome) || wrong_holds(w, genome))
        return false;
    if (w->count == w->capacity) {
        size_t capacity = w->capacity > 0 ? w->capacity * 2 : 8;
        wrong_setting *more = realloc(w->list, capacity * sizeof *more);
        if (!more)
            return false;
        w->list = more;
        w->capacity = capacity;
    }
    wrong_setting *s = &w->list[w->count++];
    *s = (wrong_setting){.mark = wrong_mark(genome), .at = at};
    snprintf(s->start, sizeof s->start, "%s", ir_genome_start(genome));
    put_macros(genome, s->macros, sizeof s->macros);
    snprintf(s->reason, sizeof s->reason, "%s", reason);
    return true;
}

unsigned wrong_marks(const wrong_list *w, uint64_t marks[WRONG_MOST]) {
    unsigned count = 0;
    for (size_t i = w->count; i-- > 0 && count < WRONG_MOST;)
        marks[count++] = w->list[i].mark;
    return count;
}
