/* Genomes for tests, from their JSON. */
#ifndef TESTS_GENOMES_H
#define TESTS_GENOMES_H

#include "ir/genome.h"

#include <stdio.h>
#include <stdlib.h>

/* Takes the reference. JSON that is no genome ends the process. */
static inline ir_genome *genome_from(json_t *json) {
    ev_error err = {0};
    ir_genome *genome = NULL;
    if (!json || ir_genome_from_json(json, &genome, &err) != EV_OK) {
        (void)fprintf(stderr, "a test's genome does not read: %s\n", err.text);
        abort();
    }
    json_decref(json);
    return genome;
}

/* A genome of the start "a" without edits. */
static inline ir_genome *genome_bare(void) {
    return genome_from(json_pack("{s:s}", "start", "a"));
}

/* Appends the deletion of base instruction `number`; a second one like it is left out. */
static inline void genome_delete(ir_genome *genome, int number) {
    char at[16];
    (void)snprintf(at, sizeof at, "i%d", number);
    ir_genome *one = genome_from(
        json_pack("{s:s,s:[{s:s,s:s}]}", "start", "a", "edits", "kind", "delete", "at", at));
    (void)ir_genome_append_from(genome, one, 0);
    ir_genome_free(one);
}

/* The base instruction that an edit works at; -1: none. */
static inline int genome_deleted(const ir_genome *genome, size_t index) {
    json_t *json = ir_genome_to_json(genome);
    const json_t *edit = json_array_get(json_object_get(json, "edits"), index);
    const char *at = json_string_value(json_object_get(edit, "at"));
    int number = at ? (int)strtol(at + 1, NULL, 10) : -1;
    json_decref(json);
    return number;
}

#endif
