/* Genomes with structural edits, for tests of the pool of skeletons. */
#ifndef TESTS_TUNER_SEARCH_SKELETON_GENOMES_H
#define TESTS_TUNER_SEARCH_SKELETON_GENOMES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "tests/genomes.h"

/* The start "textbook" with blocks in another order (option 0: without), and a local edit that
 * moves an instruction (negative: none). */
static inline ir_genome *genome_of(int option, int deleted) {
    json_t *edits = json_array();
    if (option > 0)
        assert_int_equal(
            json_array_append_new(
                edits, json_pack("{s:s,s:i}", "kind", "relabel-blocks", "option", option)),
            0);
    if (deleted >= 0) {
        char at[16];
        (void)snprintf(at, sizeof at, "i%d", deleted);
        assert_int_equal(
            json_array_append_new(edits, json_pack("{s:s,s:s}", "kind", "sink", "at", at)), 0);
    }
    return genome_from(json_pack("{s:s,s:o}", "start", "textbook", "edits", edits));
}

/* Structural edits alone: coarsen-threads with these options, and perhaps a coarsening. */
static inline ir_genome *skeleton_of(bool coarsened, int first, int second) {
    json_t *edits = json_array();
    const int options[] = {first, second};
    if (coarsened)
        assert_int_equal(
            json_array_append_new(edits, json_pack("{s:s,s:s,s:i,s:s}", "kind", "coarsen", "anchor",
                                                   "x", "option", 4, "form", "strided")),
            0);
    for (size_t i = 0; i < 2; i++) {
        if (options[i] > 0)
            assert_int_equal(
                json_array_append_new(edits, json_pack("{s:s,s:s,s:i,s:s}", "kind",
                                                       "coarsen-threads", "anchor", "y", "option",
                                                       options[i], "form", "strided")),
                0);
    }
    return genome_from(json_pack("{s:s,s:o}", "start", "textbook", "edits", edits));
}

#endif
