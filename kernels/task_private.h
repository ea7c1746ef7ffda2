/* Shared by the loader, the checks and the evaluation of tasks. Private to kernels/. */
#ifndef KERNELS_TASK_PRIVATE_H
#define KERNELS_TASK_PRIVATE_H

#include "base/arena.h"
#include "base/json.h"
#include "kernels/task.h"

#define TASK_MAX_ARGUMENTS TASK_PARAMETERS_MOST
#define TASK_MAX_STRUCT 4096 /* bytes of a struct, which all parameters of a kernel may have */
#define TASK_MAX_SYMBOLS 16
#define TASK_MAX_MEMBERS 128
#define TASK_MAX_FILES 64 /* of data */
#define TASK_MAX_HEADERS 64
#define TASK_MAX_SHAPE 32
#define TASK_MAX_MACROS 16
#define TASK_MAX_SCOPE (TASK_MAX_ARGUMENTS + TASK_MAX_SHAPE + TASK_MAX_MACROS + 1) /* a counter */
#define TASK_MAX_WHERE 128

/* A task with its private data. The task is the first member, so either pointer gives the other. */
typedef struct task_box {
    task public;
    ev_arena *arena;
    void *library; /* of an oracle from source; NULL: none */
    bool is_apart; /* an oracle from source is not built */
} task_box;

typedef struct task_table task_table;

/* The loading of one task. */
typedef struct task_loader {
    const ev_json *doc;
    ev_arena *arena; /* the task's */
    task *t;
    task_argument *members; /* those that were read, of all buffers of structs */
    size_t member_count;
    ev_error *err;
} task_loader;

/* Checks an object against a table's keys. */
ev_status task_check_keys(task_loader *l, const json_t *object, const char *where,
                          const task_table *table) EV_CHECKED;
/* A copy in the task's arena; NULL for NULL. */
const char *task_keep(task_loader *l, const char *text);
/* Refuses what is no name of an expression. */
ev_status task_check_name(task_loader *l, const char *name, const char *where) EV_CHECKED;
ev_status task_check_size(task_loader *l, size_t count, size_t low, size_t high,
                          const char *where) EV_CHECKED;
/* The index of a word in a list of names. The message of a failure lists all names. */
ev_status task_find_name(task_loader *l, const char *what, const char *name, const char *where,
                         size_t count, const char *(*name_at)(size_t), size_t *out) EV_CHECKED;
/* Reads a generator with its parameters, or a file. */
ev_status task_read_data(task_loader *l, const json_t *value, const char *where,
                         const corpus_generator **generator, const corpus_recorded **file,
                         const char **parameters) EV_CHECKED;
/* Reads "arguments", "alias" and "symbols" (task_arguments.c). */
ev_status task_read_inputs(task_loader *l) EV_CHECKED;
/* Reads an expression, given as text or as a number. */
ev_status task_read_expression(task_loader *l, const json_t *value, const char *where,
                               const char **out) EV_CHECKED;
/* Reads "ranks" and "barriers"; before the arguments (task_ranks.c). */
ev_status task_ranks_read(task_loader *l) EV_CHECKED;
/* Parts of an argument (task_arguments.c). */
ev_status task_read_align(task_loader *l, const json_t *value, const char *where,
                          task_argument *a) EV_CHECKED;
ev_status task_read_tolerance(task_loader *l, const json_t *value, const char *where,
                              task_argument *a) EV_CHECKED;
ev_status task_read_domain(task_loader *l, const json_t *value, const char *where,
                           task_argument *a) EV_CHECKED;
ev_status task_read_initial(task_loader *l, const json_t *value, const char *where,
                            task_argument *a) EV_CHECKED;
ev_status task_read_type(task_loader *l, const char *word, const char *where,
                         ev_type *out) EV_CHECKED;
/* Whether an argument is a buffer of structs, and reads one; its members go to l->members
 * (task_members.c). */
bool task_members_has(const json_t *value);
ev_status task_members_read(task_loader *l, const json_t *value, const char *where,
                            task_argument *a) EV_CHECKED;
/* Puts the members that were read at all[first] and on. */
ev_status task_members_end(task_loader *l, task_argument *all, size_t first) EV_CHECKED;
ev_status task_members_check(const task *t, const ev_json *doc, ev_error *err) EV_CHECKED;
/* Whether an argument is of kind rank or peers, and reads one. */
bool task_ranks_has_kind(const json_t *value);
ev_status task_ranks_read_argument(task_loader *l, const json_t *value, const char *where,
                                   task_argument *a) EV_CHECKED;
ev_status task_ranks_check(const task *t, const ev_json *doc, ev_error *err) EV_CHECKED;
/* Reads grid, block and shared memory of a launch (task_load.c). */
ev_status task_read_rule(task_loader *l, const json_t *value, const char *where,
                         launch_rule *rule) EV_CHECKED;
/* Reads "steps" and "scratch" of a start, and checks them at a case (task_steps.c). */
ev_status task_steps_read(task_loader *l, const json_t *start, const char *where,
                          launch_plan **out) EV_CHECKED;
/* Chooses the main launch of a start with steps: the one of whose kernel the timed cases of the
 * search launch the most threads; of equals, the first. */
ev_status task_steps_choose(const task *t, const task_start *start, launch_plan *plan,
                            ev_error *err) EV_CHECKED;
ev_status task_steps_check(const task *t, const task_start *start, const task_steps *s,
                           const task_case *c, ev_error *err) EV_CHECKED;
/* Reads "work". */
ev_status task_work_read(task_loader *l) EV_CHECKED;

/* The names that expressions see at a case, with their values. */
typedef struct task_scope {
    expr_name names[TASK_MAX_SCOPE];
    expr_scope scope; /* of `names`: do not copy */
} task_scope;

/* Whether a generator makes the same number everywhere. */
bool task_generator_is_constant(const corpus_generator *generator);

/* Those of a launch plan: the shape, the scalar arguments and the start's macros. */
ev_status task_launch_scope(const task *t, const task_start *start, const expr_name *macros,
                            size_t macro_count, const task_case *c, task_scope *out,
                            ev_error *err) EV_CHECKED;

/* The names that counts, parameters and domains see at a case: the shape's and the scalars'. */
ev_status task_case_scope(const task *t, const task_case *c, task_scope *out,
                          ev_error *err) EV_CHECKED;

/* Evaluates every expression for every case; `doc` gives the places for messages. */
ev_status task_check_all(const task *t, const ev_json *doc, ev_error *err) EV_CHECKED;

/* Reads the document of a task (task_load.c). */
ev_status task_read_all(task_box *box, const char *path, const ev_json *doc,
                        ev_error *err) EV_CHECKED;

/* Sets the oracle's kind, name and function from its text in the task file. */
ev_status task_oracle_set(task_box *box, const char *text, const ev_json *doc,
                          ev_error *err) EV_CHECKED;
void task_oracle_close(task_box *box);

/* Refuses rules of a domain that an argument of that kind and type cannot have; `where`: the
 * domain's place in the document. */
ev_status task_domain_check(const task_argument *a, const ev_json *doc, const char *where,
                            ev_error *err) EV_CHECKED;
/* Refuses work that cannot be evaluated at a case, or that moves more bytes than there are. */
ev_status task_work_check(const task *t, const ev_json *doc, const task_case *c,
                          ev_error *err) EV_CHECKED;
/* Reads "alias", after the arguments. */
ev_status task_alias_read(task *t, const ev_json *doc, ev_error *err) EV_CHECKED;
/* Reads {"file": PATH}, and puts the file into the task's list. */
ev_status task_recorded_read(task_loader *l, const json_t *value, const char *where,
                             const corpus_recorded **out) EV_CHECKED;

/* Lists the headers of the sources and of a source oracle. EV_BAD: a file cannot be read, or there
 * are too many. */
ev_status task_headers_find(task_loader *l) EV_CHECKED;
/* Sets the task's SHA-256 and those of its files. EV_BAD: a source cannot be read. */
ev_status task_identity_set(task *t, ev_error *err) EV_CHECKED;

/* The key tables, for the loader and the printed schema. */
struct task_table {
    const char *title;
    const char *doc;
    const ev_json_key *keys;
    size_t count;
};

extern const task_table TASK_TABLE_TASK, TASK_TABLE_ARGUMENT, TASK_TABLE_STRUCT, TASK_TABLE_SYMBOL,
    TASK_TABLE_START, TASK_TABLE_MACRO, TASK_TABLE_CASE, TASK_TABLE_INPUTS, TASK_TABLE_TOLERANCE,
    TASK_TABLE_BUFFER, TASK_TABLE_MEMBER, TASK_TABLE_OWN, TASK_TABLE_DOMAIN, TASK_TABLE_PITCH,
    TASK_TABLE_WORK, TASK_TABLE_RANK, TASK_TABLE_PEERS, TASK_TABLE_STEP, TASK_TABLE_GIVEN,
    TASK_TABLE_LOOP, TASK_TABLE_SCRATCH, TASK_TABLE_SCRATCH_PEERS;

#endif
