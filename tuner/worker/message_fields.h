/* Fields: one list of a message's fields serves both directions. Each field_ function writes the
 * value into the JSON where the walk encodes, and reads and checks it where the walk decodes. The
 * first failure ends the walk: later calls do nothing, and decoded values stay zero. */
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

#define FIELDS_MOST 96 /* of one object */

typedef struct walk {
    bool decodes;
    const char *message;       /* its name */
    ev_arena *arena;           /* decodes: for lists; NULL until the first */
    const ir_genome **genomes; /* decodes: references to those that were read; the caller's */
    unsigned genome_count;
    ev_status status;  /* of the first failure */
    ev_status refusal; /* the status of what is refused */
    ev_error *err;
} walk;

/* An object or a list of the message. In a list the name of a field is NULL, and the fields are its
 * elements in turn. */
typedef struct fields {
    walk *walk;
    const struct fields *outer; /* NULL: the message itself */
    const char *name;           /* in `outer`; NULL: an element of it */
    json_t *at;                 /* borrowed; NULL after a failure */
    size_t taken;
    const char *known[FIELDS_MOST]; /* names of the fields that were taken */
    bool takes_more;                /* unknown fields are no failure */
} fields;

void field_text(fields *f, const char *name, const char **value);
void field_maybe_text(fields *f, const char *name, const char **value); /* NULL: null */
void field_hash(fields *f, const char *name, char value[EV_SHA256_HEX]);
void field_bool(fields *f, const char *name, bool *value);
void field_unsigned(fields *f, const char *name, unsigned *value);
void field_count(fields *f, const char *name, uint64_t *value); /* below 2^63 */
void field_size(fields *f, const char *name, size_t *value);    /* below 2^63 */
void field_bits(fields *f, const char *name, uint64_t *value);  /* as 16 hexadecimal digits */
void field_number(fields *f, const char *name, double *value);  /* finite */
void field_genome(fields *f, const char *name, const ir_genome **value);
void field_value(fields *f, const char *name, json_t **value); /* any JSON */
void field_score(fields *f, const char *name, score *value);
/* One of `count` words, word(0) and on; gives the value back, in a decoding walk the one read. */
unsigned field_word(fields *f, const char *name, unsigned value, unsigned count,
                    const char *(*word)(unsigned));

/* Begins an object or a list inside; fields_leave ends it. The list has *count elements, in a
 * decoding walk set here; `most`: no more than that. */
fields fields_enter(fields *f, const char *name);
fields fields_enter_list(fields *f, const char *name, size_t *count, size_t most);
void fields_leave(fields *f);
/* Before a field that may be null: whether it is there. */
bool fields_maybe(fields *f, const char *name, bool is_there);
/* Ends the walk: the message "the field NAME WHAT". */
void fields_refuse(fields *f, const char *name, const char *what);
/* Zeroed elements for a decoded list, NULL for none; gives `items` back where the walk encodes. */
void *fields_items(fields *f, void *items, size_t count, size_t bytes);

#endif
