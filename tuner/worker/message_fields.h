/* Fields: one list of a message's fields serves both directions. Each field_ function writes the
 * value to the JSON if the walk encodes. If the walk decodes, the function reads and checks the
 * value. The first failure ends the walk: later calls do nothing, and decoded values stay zero.
 * Decoded texts are borrowed from the JSON, decoded lists from the walk's arena. */
#ifndef TUNER_WORKER_MESSAGE_FIELDS_H
#define TUNER_WORKER_MESSAGE_FIELDS_H

#include "base/arena.h"
#include "base/hash.h"
#include "base/status.h"
#include "fitness/gates/score.h"
#include "ir/genome.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FIELDS_MOST 96 /* most fields of one object */

typedef struct walk {
    bool decodes;
    const char *message;       /* name of the message, for errors */
    ev_arena *arena;           /* decoding: memory of lists; NULL until the first list */
    const ir_genome **genomes; /* decoding: references to the genomes that were read; the
                                  caller owns them */
    unsigned genome_count;
    ev_status status;  /* status of the first failure */
    ev_status refusal; /* status for a refused field */
    ev_error *err;
} walk;

/* An object or a list inside a message. In a list, fields have no name (NULL) and are its elements
 * in order. */
typedef struct fields {
    walk *walk;
    const struct fields *outer; /* NULL: the message itself */
    const char *name;           /* name in `outer`; NULL: a list element */
    json_t *at;                 /* borrowed; NULL after a failure */
    size_t taken;
    const char *known[FIELDS_MOST]; /* names of the fields that were handled */
    bool takes_more;                /* unknown fields are accepted */
} fields;

void field_text(fields *f, const char *name, const char **value);
/* NULL stands for JSON null */
void field_maybe_text(fields *f, const char *name, const char **value);
void field_hash(fields *f, const char *name, char value[EV_SHA256_HEX]);
void field_bool(fields *f, const char *name, bool *value);
void field_unsigned(fields *f, const char *name, unsigned *value);
void field_count(fields *f, const char *name, uint64_t *value); /* below 2^63 */
void field_size(fields *f, const char *name, size_t *value);    /* below 2^63 */
void field_bits(fields *f, const char *name, uint64_t *value);  /* as 16 hexadecimal digits */
void field_number(fields *f, const char *name, double *value);  /* must be finite */
void field_genome(fields *f, const char *name, const ir_genome **value);
void field_value(fields *f, const char *name, json_t **value); /* any JSON value */
void field_score(fields *f, const char *name, score *value);
/* One of the `count` words word(0), word(1), ... Returns the value; in a decoding walk, the value
 * read. */
unsigned field_word(fields *f, const char *name, unsigned value, unsigned count,
                    const char *(*word)(unsigned));

/* Enters an object or a list; fields_leave ends it. *count: number of elements, set by a decoding
 * walk. A list of more than `most` elements is refused. */
fields fields_enter(fields *f, const char *name);
fields fields_enter_list(fields *f, const char *name, size_t *count, size_t most);
void fields_leave(fields *f);
/* Stands before a field that may be null. Returns whether the field is present. */
bool fields_maybe(fields *f, const char *name, bool is_there);
/* Ends the walk with the message "the field NAME WHAT". */
void fields_refuse(fields *f, const char *name, const char *what);
/* Memory for a list: zeroed elements if the walk decodes (NULL: none), else `items` itself. */
void *fields_items(fields *f, void *items, size_t count, size_t bytes);

#endif
