/* The worker of test_worker_pool: serves a coordinator over stdin and stdout until stdin closes. It
 * is a program of its own, since the start of one that links LLVM takes 0.1 s, with sanitizers 0.3.
 */
#include "tests/tuner/worker/fake_worker.h"

#include "tests/genomes.h"

#include "base/file.h"
#include "base/json.h"
#include "fitness/gates/score.h"
#include "tuner/run/tune.h"
#include "tuner/search/draw.h"
#include "tuner/worker/protocol.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct fake {
    channel line;
    task *t;
    bool has[NUMBERS];
    char ir[EV_SHA256_HEX];
    char code[EV_SHA256_HEX]; /* of the sketch, and of the PTX */
} fake;

static void must(ev_status status, const ev_error *err) {
    if (status == EV_OK)
        return;
    (void)fprintf(stderr, "fake worker: %s\n", err->text);
    _exit(3);
}

static void say(fake *f, const message *m) {
    ev_error err;
    must(message_send(&f->line, m, &err), &err);
}

/* False: the coordinator is gone. */
static bool hear(fake *f, message *out) {
    ev_error err;
    bool got = false;
    must(message_receive(&f->line, out, &got, &err), &err);
    return got;
}

static bool ask(fake *f, const message *question) {
    message answer = {0};
    say(f, question);
    if (!hear(f, &answer))
        _exit(0);
    bool go = answer.kind == MESSAGE_GO;
    message_free(&answer);
    return go;
}

static bool ask_hash(fake *f, message_kind kind, const char sha256[EV_SHA256_HEX]) {
    message m = {.kind = kind};
    memcpy(m.hash.sha256, sha256, sizeof m.hash.sha256);
    return ask(f, &m);
}

/* Whether the environment asks for `kind` at this child, for the first time. */
static bool has_fault(const char *kind, uint64_t child) {
    const char *fault = getenv("EVOKE_FAULT"), *marker = getenv("EVOKE_FAULT_MARKER");
    char want[64];
    (void)snprintf(want, sizeof want, "%s:%llu", kind, (unsigned long long)child);
    if (!fault || !marker || strcmp(fault, want) != 0)
        return false;
    int fd = open(marker, O_CREAT | O_EXCL | O_WRONLY, 0600);
    if (fd >= 0)
        (void)close(fd);
    return fd >= 0;
}

static void understand(fake *f, const ir_genome *genome) {
    memset(f->has, 0, sizeof f->has);
    char set[NUMBERS + 64];
    for (size_t i = 0; i < ir_genome_edit_count(genome); i++) {
        int number = genome_deleted(genome, i);
        f->has[number < 0 ? 0 : number] = true; /* a knob has no place */
    }
    for (int i = 0; i < NUMBERS; i++) /* the numbers from 30 on leave no trace in the code */
        set[i] = f->has[i] && i < 30 ? '1' : '0';
    (void)snprintf(set + NUMBERS, 64, "%.60s", ir_genome_start(genome));
    ev_sha256 sha = ev_sha256_of(set, strlen(set));
    memcpy(f->ir, sha.hex, sizeof f->ir);
    set[LOWERED] = '0';
    sha = ev_sha256_of(set, strlen(set));
    memcpy(f->code, sha.hex, sizeof f->code);
}

static double time_of(const fake *f, const ir_genome *genome) {
    double ns = strcmp(ir_genome_start(genome), f->t->starts[0].name) == 0 ? 1000 : 900;
    for (size_t i = 0; i < sizeof gains / sizeof gains[0]; i++)
        ns -= f->has[gains[i]] ? 100 : 0;
    ns -= f->has[CHEAT] ? 300 : 0;
    ns -= f->has[PAIR_A] && f->has[PAIR_B] ? 150 : 0;
    for (int i = 24; i < 30; i++)
        ns += f->has[i] ? i : 0;
    return ns + 2 * (double)ir_genome_macro_count(genome);
}

/* Copies in place of edits of genome_delete: the pool's tests know them by their place alone. */
static void append_copy(ir_genome *genome, unsigned number) {
    ir_genome *one = genome_from(json_pack("{s:s,s:[{s:s,s:o}]}", "start", "a", "edits", "kind",
                                           "copy", "at", json_sprintf("i%u", number)));
    (void)ir_genome_append_from(genome, one, 0); /* false: it is there */
    ir_genome_free(one);
}

static ir_genome *draw(const recipe *r) {
    ir_genome *genome = ir_genome_clone(r->parents[0]);
    const ir_genome *mate = r->parents[1];
    for (size_t i = 0; mate && i < ir_genome_edit_count(mate); i++)
        (void)ir_genome_append_from(genome, mate, i);
    ev_pcg rng = ev_pcg_child(r->stream.seed, 1, 2, (uint32_t)r->stream.child);
    for (unsigned i = 0; i < r->step_count; i++)
        append_copy(genome, ev_pcg_below(&rng, NUMBERS));
    return genome;
}

static void add_code(const fake *f, done_message *m, const ir_genome *genome) {
    ev_sha256 sha = ir_genome_sha256(genome);
    m->has_code = true;
    m->code = (code_reply){.ptx = f->code, .entry = "fake"};
    memcpy(m->code.genome_sha256, sha.hex, sizeof sha.hex);
    memcpy(m->code.ir_sha256, f->ir, sizeof f->ir);
    memcpy(m->code.ptx_sha256, f->code, sizeof f->code);
    m->words = "words\n";
}

/* Edits that pay, and none that does not. */
static bool is_bare(const fake *f) {
    bool pays = f->has[PAIR_A] || f->has[PAIR_B], other = false;
    for (int i = 0; i < NUMBERS; i++) {
        bool gains_by_it = i == PAIR_A || i == PAIR_B;
        for (size_t k = 0; k < sizeof gains / sizeof gains[0]; k++)
            gains_by_it = gains_by_it || gains[k] == i;
        pays = pays || (f->has[i] && gains_by_it);
        other = other || (f->has[i] && !gains_by_it);
    }
    return pays && !other;
}

static void score_it(fake *f, const ir_genome *genome, bool promotes) {
    score s = {.stopped = GATE_NONE, .ns = time_of(f, genome), .error = 1e-6};
    s.estimated = getenv("EVOKE_BUILDS_NOTHING") != NULL;
    if (f->has[TRAPS])
        s = (score){.stopped = GATE_SAFE, .reason = "out-of-bounds", .trap = "out-of-bounds"};
    if (promotes && (f->has[CHEAT] || (getenv("EVOKE_FRAGILE") && is_bare(f))))
        s = (score){.stopped = GATE_PROMOTED, .reason = "wrong at another shape"};
    for (size_t i = 0; promotes && i < f->t->case_count; i++) {
        const task_case *at = &f->t->cases[i];
        if (at->split != CORPUS_HELD_OUT || at->use != TASK_TIME)
            continue;
        score_case *c = &s.cases[s.case_count++];
        (void)snprintf(c->name, sizeof c->name, "%s", at->name);
        c->ns = time_of(f, genome) * 2;
    }
    message m = {.kind = MESSAGE_DONE, .done = {.has_score = true, .score = s}};
    add_code(f, &m.done, genome);
    say(f, &m);
}

/* All that take the same time ran alike. */
static bool ask_how_it_ran(fake *f, message_kind kind, const ir_genome *genome) {
    char text[96];
    (void)snprintf(text, sizeof text, "%d %.3f", kind, time_of(f, genome));
    ev_sha256 sha = ev_sha256_of(text, strlen(text));
    return f->has[TRAPS] || ask_hash(f, kind, sha.hex);
}

static void recall(fake *f) {
    message m = {.kind = MESSAGE_DONE,
                 .done = {.has_score = true,
                          .score = {.stopped = GATE_NONE, .small_ns = 1, .recalled = true}}};
    say(f, &m);
}

static void evaluate(fake *f, const ir_genome *genome, bool asks) {
    understand(f, genome);
    say(f, &(message){.kind = MESSAGE_STAGE, .stage = {STAGE_EMIT}});
    if (f->has[FAILS]) {
        say(f, &(message){.kind = MESSAGE_FAILED,
                          .failed = {.gate = GATE_VERIFY, .reason = "edit 1 does not apply"}});
        return;
    }
    if (f->has[ABORTS])
        abort();
    bool is_new = ask_hash(f, MESSAGE_IR, f->ir) && ask_hash(f, MESSAGE_SKETCH, f->code);
    bool fresh = is_new && ask_how_it_ran(f, MESSAGE_SKETCH_RAN, genome);
    bool built = fresh && ask_hash(f, MESSAGE_PTX, f->code);
    if ((is_new && !fresh) || (built && !ask_how_it_ran(f, MESSAGE_RAN, genome)))
        recall(f);
    else if (!built && asks)
        say(f, &(message){.kind = MESSAGE_DONE});
    else
        score_it(f, genome, false);
}

static void misbehave(fake *f, uint64_t child) {
    if (has_fault("kill-worker", child))
        (void)kill(getpid(), SIGKILL);
    if (has_fault("kill-coordinator", child)) {
        (void)kill(getppid(), SIGKILL);
        (void)pause();
    }
    if (has_fault("leave", child))
        _exit(0);
    if (has_fault("babble", child))
        (void)!write(f->line.out, "hello there\n", 12);
    if (has_fault("stammer", child)) /* a message without its fields */
        (void)!write(f->line.out, "{\"type\": \"done\"}\n", 17);
}

/* Wants a thing, and makes it where no other worker did; EVOKE_SHELF names a file to note it in. */
static void use_shelf(fake *f) {
    const char *path = getenv("EVOKE_SHELF");
    int fd = path ? open(path, O_CREAT | O_APPEND | O_WRONLY, 0600) : -1;
    if (fd < 0)
        return;
    message answer = {0};
    say(f, &(message){.kind = MESSAGE_WANT, .want = {"thing"}});
    if (!hear(f, &answer))
        _exit(0);
    if (answer.kind == MESSAGE_GO) {
        json_t *value = json_pack("[f,s]", 0.1, "made");
        say(f, &(message){.kind = MESSAGE_MADE, .made = {.key = "thing", .value = value}});
        json_decref(value);
        (void)!write(fd, "made\n", 5);
    } else {
        bool same = json_number_value(json_array_get(answer.made.value, 0)) == 0.1;
        (void)!write(fd, same ? "used\n" : "odd!\n", 5);
    }
    message_free(&answer);
    (void)close(fd);
}

static void do_child(fake *f, const recipe *r) {
    misbehave(f, r->stream.child);
    use_shelf(f);
    if (getenv("EVOKE_SLOW"))
        (void)usleep(4000);
    ir_genome *genome = draw(r);
    ev_sha256 sha = ir_genome_sha256(genome);
    message m = {.kind = MESSAGE_DRAWN,
                 .drawn = {.genome = genome, .operators = r->step_count == 0 ? "start" : "copy"}};
    memcpy(m.drawn.sha256, sha.hex, sizeof sha.hex);
    if (ask(f, &m))
        evaluate(f, genome, true);
    else
        say(f, &(message){.kind = MESSAGE_DONE});
    ir_genome_free(genome);
}

static void do_check(fake *f, const ir_genome *genome) {
    case_check *cases = calloc(f->t->case_count, sizeof *cases);
    message m = {.kind = MESSAGE_DONE, .done = {.has_cases = true, .cases = cases}};
    understand(f, genome);
    for (size_t i = 0; i < f->t->case_count; i++)
        cases[m.done.case_count++] = (case_check){.name = f->t->cases[i].name,
                                                  .ok = true,
                                                  .ns = time_of(f, genome),
                                                  .error = 1e-6,
                                                  .reason = ""};
    add_code(f, &m.done, genome);
    say(f, &m);
    free(cases);
}

static void say_ready(fake *f) {
    char other[40];
    const char *drawn[] = {"odd:n=3", other};
    ready_message r = {
        .gpu_name = "fake", .driver = "", .sm = 90, .modelled = true, .drawn = drawn};
    r.starts = calloc(f->t->start_count, sizeof *r.starts);
    r.baseline = calloc(f->t->case_count, sizeof *r.baseline);
    memcpy(r.task_sha256, f->t->sha256.hex, sizeof r.task_sha256);
    for (size_t i = 0; r.starts && i < f->t->start_count; i++) {
        ready_start *start = &r.starts[r.start_count++];
        start->name = f->t->starts[i].name;
        for (int k = 0; k < IR_EDIT_COUNT; k++)
            start->sites[k] = 3;
    }
    for (size_t i = 0; r.baseline && i < f->t->case_count; i++)
        r.baseline[r.baseline_count++] = (case_time){f->t->cases[i].name, 2000};
    (void)snprintf(other, sizeof other, "%d", (int)getpid());
    r.drawn_count = getenv("EVOKE_OTHER_CASES") ? 2 : 0;
    say(f, &(message){.kind = MESSAGE_READY, .ready = r});
    free(r.starts);
    free(r.baseline);
}

static void do_open(fake *f, const open_message *m) {
    ev_error err;
    if (getenv("EVOKE_BAD_BASELINE")) {
        say(f, &(message){.kind = MESSAGE_ERROR,
                          .error = {EV_BAD, "the baseline disagrees with its oracle"}});
        return;
    }
    task_free(f->t);
    f->t = NULL;
    must(task_open(m->task, &f->t, &err), &err);
    say_ready(f);
}

static void do_hello(fake *f) {
    const char *version = getenv("EVOKE_OTHER_VERSION");
    message m = {.kind = MESSAGE_HELLO,
                 .hello = {PROTOCOL_VERSION, version ? version : EVOKE_VERSION, ir_llvm_version()}};
    if (getenv("EVOKE_ALWAYS_DIES"))
        (void)kill(getpid(), SIGKILL);
    say(f, &m);
}

static void serve(fake *f, const message *m) {
    switch (m->kind) {
    case MESSAGE_HELLO:
        do_hello(f);
        break;
    case MESSAGE_OPEN:
        do_open(f, &m->open);
        break;
    case MESSAGE_CHILD:
        do_child(f, &m->child.recipe);
        break;
    case MESSAGE_SCORE:
        evaluate(f, m->variant.genome, false);
        break;
    case MESSAGE_PROMOTE:
        understand(f, m->promote.genome);
        score_it(f, m->promote.genome, true);
        break;
    default:
        do_check(f, m->variant.genome);
    }
}

int main(void) {
    fake f = {.line = {.in = 0, .out = 1}};
    message m = {0};
    while (hear(&f, &m)) {
        serve(&f, &m);
        message_free(&m);
    }
    task_free(f.t);
    channel_free(&f.line);
    return 0;
}
