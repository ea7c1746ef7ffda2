/* Protocol: the messages between coordinator and workers as C structs, and their transport as one
 * JSON object a line (tuner/worker/channel.h). Each message is a row of tuner/worker/messages.def.
 * messages.c lists the fields with their names on the wire. Times of kernels are in ns, times of
 * processes in seconds.
 *
 * Ownership: a message that is sent borrows all its texts, genomes and lists. A received message
 * owns memory for them until message_free. To keep a genome or a value longer, take a reference
 * (ir_genome_ref, json_incref). */
#ifndef TUNER_WORKER_PROTOCOL_H
#define TUNER_WORKER_PROTOCOL_H

#include "base/arena.h"
#include "base/hash.h"
#include "base/status.h"
#include "fitness/gates/fitness.h"
#include "ir/genome.h"
#include "tuner/search/recipe.h"
#include "tuner/worker/channel.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROTOCOL_VERSION 17
#define MESSAGE_GENOMES (RECIPE_STOCK + 3) /* most genomes in one message: those of a recipe */

/* A worker's part in an evaluation. Two processes on one GPU would disturb each other's times, so
 * each GPU has one timer. Screeners keep the timer busy: they draw and build variants, run gates 1
 * to 4 on the virtual machine, and pass the remaining variants on. */
typedef enum worker_role {
    ROLE_WHOLE, /* draws, builds, screens and times */
    ROLE_SCREENER,
    ROLE_TIMER,
    ROLE_COUNT
} worker_role;

const char *worker_role_name(worker_role role);

/* The stages of an evaluation in a worker, in order. A fault in a stage counts at the stage's gate.
 */
typedef enum stage {
    STAGE_IDLE,
    STAGE_OPEN, /* loads the task and its baseline; a fault here is no candidate's */
    STAGE_DRAW,
    STAGE_EDIT,
    STAGE_VERIFY,
    STAGE_OPTIMISE,
    STAGE_EMIT,
    STAGE_SCORE,
    STAGE_PROMOTE,
    STAGE_COUNT
} stage;

const char *stage_name(stage s);

/* The parts of an evaluation whose CPU time is reported. */
typedef enum worker_part {
    PART_MUTATE,
    PART_BUILD,
    PART_LOAD,
    PART_SAFE,
    PART_ACCURATE,
    PART_TIMED,
    PART_PROMOTE,
    PART_COUNT
} worker_part;

#define WORKER_PART_NAMES "mutate", "build", "load", "safe", "accurate", "timed", "promote"

/* ---- fields ---- */

typedef struct hello_message {
    uint64_t protocol;
    const char *evoke, *llvm; /* versions */
} hello_message;

typedef struct open_message {
    const char *task, *device; /* path of task.json, and device such as "vm:h200" */
    worker_role role;
    unsigned splits;  /* splits on which the baseline is checked: bits 1 << corpus_split */
    unsigned jobs;    /* host threads for gate 6 */
    double watchdog;  /* limit of an evaluation in CPU seconds */
    bool holds_never; /* DEVICE_NO_HOLD is set on the coordinator's side */
} open_message;

typedef struct ready_start {
    const char *name;
    size_t sites[IR_EDIT_COUNT]; /* number of places of each edit in the start's base */
} ready_start;

typedef struct case_time {
    const char *name;
    double ns;
} case_time;

typedef struct ready_message {
    char task_sha256[EV_SHA256_HEX];
    const char *gpu_name;
    const char *driver; /* "CUDA driver 13.0"; "": without one */
    unsigned sm;
    bool modelled; /* times are modelled, not measured */
    ready_start *starts;
    size_t start_count;
    case_time *baseline; /* the baseline's times at the timed cases, the drawn ones among them */
    size_t baseline_count;
    case_time *floors; /* of the timed cases; none where the task declares no work, or no GPU
                          description is of the device */
    size_t floor_count;
    const char **drawn; /* names of the drawn cases, also of those that are timed */
    size_t drawn_count;
} ready_message;

typedef struct child_message {
    recipe recipe; /* all fields but the lineage */
} child_message;

/* Fields of score, replay and check. */
typedef struct variant_message {
    const ir_genome *genome;
} variant_message;

/* Fields of time. */
typedef struct screened_message {
    const ir_genome *genome;
    const char *ptx;
    score score; /* the screener's score */
} screened_message;

typedef struct promote_message {
    const ir_genome *genome;
    fitness_bar bar;
} promote_message;

typedef struct stage_message {
    stage stage;
} stage_message;

typedef struct drawn_message {
    const ir_genome *genome;
    char sha256[EV_SHA256_HEX];
    const char *operators; /* names of the arms that made the genome, separated by commas */
} drawn_message;

/* Fields of ir, sketch, sketch-ran, ptx and ran. */
typedef struct hash_message {
    char sha256[EV_SHA256_HEX];
} hash_message;

typedef struct want_message {
    const char *key; /* key of an entry of the base store */
} want_message;

typedef struct made_message {
    const char *key;
    json_t *value; /* any JSON; bases.c and its callers define the values */
} made_message;

/* go and seen have no fields. */
typedef struct nothing_message {
    char unused;
} nothing_message;

/* Fields that end a job. */
typedef struct job_end {
    double seconds[PART_COUNT]; /* CPU time by part */
    bool leaves;                /* the worker ends because its device is spent */
    uint64_t bold; /* number of bold edits of the genome that the job built (ir_build_bold) */
} job_end;

/* Fields of screened. */
typedef struct passed_message {
    const char *ptx;
    score score;
    job_end end;
} passed_message;

typedef struct code_reply {
    char genome_sha256[EV_SHA256_HEX], ir_sha256[EV_SHA256_HEX], ptx_sha256[EV_SHA256_HEX];
    const char *ptx, *entry;
    uint64_t may_alias; /* as candidate.may_alias */
} code_reply;

/* The result of a check at one timed held-out case. */
typedef struct case_check {
    const char *name;
    bool ok;
    double ns, low_ns, high_ns; /* with the interval of 95 % */
    double error;               /* relative L2, finite */
    const char *reason;         /* "" if the case is ok */
} case_check;

typedef struct done_message {
    bool has_score; /* for child, score, time and promote, unless the child was a duplicate */
    score score;
    bool has_code; /* for promote, replay and check */
    code_reply code;
    const char *words; /* the edits in words, a line each: for replay, and for promote if gate
                          6 passed; NULL: none */
    bool has_cases;    /* for check */
    case_check *cases;
    size_t case_count;
    job_end end;
} done_message;

typedef struct failed_message {
    gate gate;
    const char *reason;
    job_end end;
} failed_message;

typedef struct fatal_message {
    stage stage;
    const char *reason;
} fatal_message;

typedef struct error_message {
    ev_status status; /* EV_BAD or EV_INFRA */
    const char *text;
} error_message;

/* ---- messages ---- */

typedef enum message_kind {
#define MESSAGE(id, name, fields, from, meaning) MESSAGE_##id,
#include "tuner/worker/messages.def"
#undef MESSAGE
    MESSAGE_COUNT
} message_kind;

const char *message_name(message_kind kind);

typedef struct message {
    message_kind kind;
    union {
        hello_message hello;
        open_message open;
        ready_message ready;
        child_message child;
        variant_message variant;
        screened_message screened;
        promote_message promote;
        stage_message stage;
        drawn_message drawn;
        hash_message hash;
        want_message want;
        made_message made;
        nothing_message nothing;
        passed_message passed;
        done_message done;
        failed_message failed;
        fatal_message fatal;
        error_message error;
    };
    json_t *source;  /* of a received message: owns its texts and genomes */
    ev_arena *arena; /* of a received message: memory of its lists; NULL: no lists */
    const ir_genome *genomes[MESSAGE_GENOMES]; /* of a received message: references to its
                                                  genomes */
    unsigned genome_count;
} message;

/* Frees the memory of a received message. A zeroed message is fine. */
void message_free(message *m);

/* Encodes a message. *out: a new reference. EV_INFRA: out of memory, or a number without a JSON
 * form. */
ev_status message_encode(const message *m, json_t **out, ev_error *err) EV_CHECKED;
/* Decodes a message. Takes over the reference to `object`. A missing, unknown or wrong field is
 * refused, with the names of message and field. The status is EV_BAD in `hello`, since its sender
 * has another version, else EV_INFRA. */
ev_status message_decode(json_t *object, message *out, ev_error *err) EV_CHECKED;

/* Encodes and sends a message. EV_INFRA: the other side has closed the connection. */
ev_status message_send(channel *c, const message *m, ev_error *err) EV_CHECKED;
/* Takes the next message that was read completely. *got: there is one. */
ev_status message_next(channel *c, message *out, bool *got, ev_error *err) EV_CHECKED;
/* Waits for a message. *got is false at the end of the stream. */
ev_status message_receive(channel *c, message *out, bool *got, ev_error *err) EV_CHECKED;
/* Writes a `fatal` message with async-signal-safe calls only. `reason`: printable ASCII without
 * quotes and backslashes. */
void message_write_fatal(int fd, stage at, const char *reason);

#endif
