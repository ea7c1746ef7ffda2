/* Modules of several PTX texts for the assembler, and what its log says of each text. */
#include "tests/fitness/device/ptx_batches.h"

#include "tests/fitness/device/ptx_join.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 64           /* texts in one module at most, */
#define BATCH_BYTES 400000 /* with so many bytes before the last one */
#define PLACES 8           /* modules that are being filled */
#define SECONDS_EACH 5     /* of the assembler's time for each further text */

typedef struct held {
    unsigned kind;
    char *text, name[PTX_NAME_BYTES];
} held;

/* Texts with one head, for one target. */
typedef struct batch {
    held list[BATCH];
    size_t count, bytes;
    int sm;
} batch;

struct ptx_batches {
    ptxas p;
    ptx_on_verdict *on;
    void *context;
    batch open[PLACES];
    size_t oldest;
    unsigned calls;
};

/* ---- one module ---- */

static void tell(const ptx_batches *b, const held *of, int sm, const ev_error *refused,
                 unsigned long spilled) {
    b->on(b->context, &(ptx_verdict){.kind = of->kind,
                                     .name = of->name,
                                     .text = of->text,
                                     .sm = sm,
                                     .refused = refused,
                                     .spilled = spilled});
}

/* Of "Function properties for NAME_NUMBER\n 8 bytes stack frame, 4 bytes spill stores, ...". A text
 * alone has no number behind its names. */
static void tell_spills(const ptx_batches *b, const held *list, size_t count, const char *log,
                        int sm) {
    static const char begin[] = "Function properties for ", mark[] = " bytes spill stores";
    for (const char *at = strstr(log, begin); at != NULL; at = strstr(at + 1, begin)) {
        const char *end = at + strcspn(at, "\n"), *stores = strstr(end, mark), *number = end;
        if (stores == NULL)
            return;
        while (stores[-1] >= '0' && stores[-1] <= '9')
            stores--;
        while (number[-1] >= '0' && number[-1] <= '9')
            number--;
        unsigned long bytes = strtoul(stores, NULL, 10);
        size_t text = count > 1 ? strtoul(number, NULL, 10) : 0;
        if (bytes > 0 && text < count)
            tell(b, &list[text], sm, NULL, bytes);
    }
}

static bool assembles(ptx_batches *b, const char *ptx, int sm, double seconds, ev_str *log,
                      ev_error *err) {
    ptxas p = b->p;
    ev_str cubin = EV_STR_EMPTY;
    bool deadly = false;
    p.seconds += seconds;
    b->calls++;
    ev_status status = ptxas_run(&p, ptx, sm, &cubin, log, &deadly, err);
    ev_str_free(&cubin);
    return status == EV_OK;
}

/* Halves of what is refused, down to the text that is to blame, which is assembled as it is. */
static void check_together(ptx_batches *b, const held *list, size_t count, int sm) {
    ev_error err = {0};
    ev_str all = EV_STR_EMPTY, log = EV_STR_EMPTY;
    if (count > 1)
        ptx_join_head(&all, list[0].text);
    for (size_t i = 0; count > 1 && i < count; i++)
        ptx_join_body(&all, list[i].text, i);
    if (all.failed)
        abort();
    bool takes = assembles(b, count > 1 ? ev_str_text(&all) : list[0].text, sm,
                           (double)(count - 1) * SECONDS_EACH, &log, &err);
    if (takes)
        tell_spills(b, list, count, ev_str_text(&log), sm);
    ev_str_free(&all);
    ev_str_free(&log);
    if (takes)
        return;
    if (count == 1) {
        tell(b, list, sm, &err, 0);
        return;
    }
    check_together(b, list, count / 2, sm);
    check_together(b, list + count / 2, count - count / 2, sm);
}

/* ---- modules that are being filled ---- */

static void flush(ptx_batches *b, batch *of) {
    if (of->count > 0)
        check_together(b, of->list, of->count, of->sm);
    for (size_t i = 0; i < of->count; i++)
        free(of->list[i].text);
    of->count = of->bytes = 0;
}

static bool can_hold(const batch *b, const char *head, size_t bytes, int sm) {
    size_t there = 0;
    const char *first = b->count > 0 ? ptx_head(b->list[0].text, &there) : NULL;
    return first != NULL && b->sm == sm && there == bytes && memcmp(first, head, bytes) == 0;
}

/* Where a text with this head may stand. */
static batch *place_of(ptx_batches *b, const char *text, int sm) {
    size_t bytes = 0, empty = PLACES;
    const char *head = ptx_head(text, &bytes);
    for (size_t i = 0; i < PLACES; i++) {
        if (head != NULL && can_hold(&b->open[i], head, bytes, sm))
            return &b->open[i];
        if (b->open[i].count == 0)
            empty = i;
    }
    if (empty == PLACES)
        empty = b->oldest++ % PLACES;
    flush(b, &b->open[empty]);
    b->open[empty].sm = sm;
    return &b->open[empty];
}

ptx_batches *ptx_batches_new(const ptxas *p, ptx_on_verdict *on, void *context) {
    ptx_batches *b = calloc(1, sizeof *b);
    if (b == NULL)
        abort();
    b->p = *p;
    b->on = on;
    b->context = context;
    return b;
}

void ptx_batches_add(ptx_batches *b, unsigned kind, const char *text, const char *name, int sm) {
    batch *to = place_of(b, text, sm);
    held *h = &to->list[to->count++];
    size_t ignored = 0;
    *h = (held){.kind = kind, .text = strdup(text)};
    (void)snprintf(h->name, sizeof h->name, "%s", name);
    if (h->text == NULL)
        abort();
    to->bytes += strlen(text);
    if (to->count == BATCH || to->bytes > BATCH_BYTES || ptx_head(text, &ignored) == NULL)
        flush(b, to);
}

unsigned ptx_batches_end(ptx_batches *b) {
    for (size_t i = 0; i < PLACES; i++)
        flush(b, &b->open[i]);
    unsigned calls = b->calls;
    free(b);
    return calls;
}

/* ---- proof ---- */

static void note(void *context, const ptx_verdict *v) {
    ev_str_printf(context, "%s%s;", v->name, v->refused != NULL ? "" : " spills");
}

/* Adds a text of this body; its name is a number. */
static void add_body(ptx_batches *b, const char *body, unsigned number, int sm) {
    ev_str text = EV_STR_EMPTY;
    char name[20];
    ev_str_printf(&text, ".version 6.3\n.target sm_50\n.address_size 64\n%s", body);
    (void)snprintf(name, sizeof name, "%u", number);
    ptx_batches_add(b, 0, ev_str_text(&text), name, sm);
    ev_str_free(&text);
}

/* Adds a text that holds 64 values in so many registers. */
static void add_values(ptx_batches *b, unsigned registers, unsigned number, int sm) {
    enum { VALUES = 64 };
    ev_str body = EV_STR_EMPTY;
    ev_str_printf(&body,
                  ".visible .entry k(.param .u64 k_a)\n.maxnreg %u\n{\n.reg .b64 %%a;\n"
                  ".reg .b32 %%v<%d>;\nld.param.u64 %%a, [k_a];\n",
                  registers, VALUES);
    for (int v = 0; v < VALUES; v++)
        ev_str_printf(&body, "ld.volatile.global.u32 %%v%d, [%%a+%d];\n", v, 4 * v);
    for (int v = 0; v < VALUES; v++)
        ev_str_printf(&body, "st.volatile.global.u32 [%%a+%d], %%v%d;\n", 4 * v, v);
    ev_str_printf(&body, "ret;\n}\n");
    add_body(b, ev_str_text(&body), number, sm);
    ev_str_free(&body);
}

/* True: *said, which is emptied, and the calls are as expected. */
static bool is_said(ev_str *said, const char *expected, unsigned calls, unsigned expected_calls) {
    bool fine = strcmp(ev_str_text(said), expected) == 0 && calls == expected_calls;
    if (!fine)
        (void)fprintf(stderr,
                      "the test is broken: of texts together it says '%s' in %u calls; expected "
                      "'%s' in %u\n",
                      ev_str_text(said), calls, expected, expected_calls);
    ev_str_free(said);
    return fine;
}

bool ptx_batches_prove(const ptxas *p, int sm) {
    static const char *const bodies[] = {
        ".visible .global .u32 g;\n.visible .entry k(.param .u64 k_a)\n{\nret;\n}\n",
        ".visible .entry k()\n{\nnonsense;\nret;\n}\n",
        ".visible .entry k(.param .u64 k_a)\n{ // k {\n.reg .b64 %k;\nmov.b64 %k, k_a;\nret;\n}\n",
        /* takes what only another text declares */
        ".visible .entry k()\n{\n.reg .b32 %r;\nld.global.u32 %r, [g];\nret;\n}\n",
        ".visible .entry k()\n{\nret;\n}\n"};
    ev_str said = EV_STR_EMPTY;
    ptx_batches *b = ptx_batches_new(p, note, &said);
    for (unsigned i = 0; i < 5; i++)
        add_body(b, bodies[i], i, sm);
    bool fine = is_said(&said, "1;3;", ptx_batches_end(b), 9);
    b = ptx_batches_new(p, note, &said); /* those that are sound take one process */
    for (unsigned i = 0; i < 5; i += 2)
        add_body(b, bodies[i], i, sm);
    fine = is_said(&said, "", ptx_batches_end(b), 1) && fine;
    b = ptx_batches_new(p, note, &said);
    add_values(b, 128, 0, sm);
    add_values(b, 24, 1, sm);
    fine = is_said(&said, "1 spills;", ptx_batches_end(b), 1) && fine;
    b = ptx_batches_new(p, note, &said);
    add_values(b, 24, 0, sm);
    return is_said(&said, "0 spills;", ptx_batches_end(b), 1) && fine;
}
