/* The worker of test_worker_pool. */
#include "tests/tuner/worker/fake_worker.h"

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

static void say(fake *f, json_t *message) {
    ev_error err;
    must(channel_send(&f->line, message, &err), &err);
}

static json_t *hear(fake *f) {
    ev_error err;
    json_t *message = NULL;
    must(channel_receive(&f->line, &message, &err), &err);
    return message;
}

static bool ask(fake *f, json_t *question) {
    say(f, question);
    json_t *answer = hear(f);
    if (!answer)
        _exit(0);
    bool go = message_kind_of(answer) == MESSAGE_GO;
    json_decref(answer);
    return go;
}

/* Whether the environment asks for `kind` at this child, for the first time. */
static bool has_fault(const char *kind, json_int_t child) {
    const char *fault = getenv("EVOKE_FAULT"), *marker = getenv("EVOKE_FAULT_MARKER");
    char want[64];
    (void)snprintf(want, sizeof want, "%s:%lld", kind, (long long)child);
    if (!fault || !marker || strcmp(fault, want) != 0)
        return false;
    int fd = open(marker, O_CREAT | O_EXCL | O_WRONLY, 0600);
    if (fd >= 0)
        (void)close(fd);
    return fd >= 0;
}

static void understand(fake *f, const json_t *genome) {
    memset(f->has, 0, sizeof f->has);
    size_t at = 0;
    const json_t *edit = NULL;
    char set[NUMBERS + 64];
    json_array_foreach(json_object_get(genome, "edits"), at, edit)
        f->has[strtol(ev_json_text(edit, "at", "i0") + 1, NULL, 10)] = true;
    for (int i = 0; i < NUMBERS; i++) /* the numbers from 30 on leave no trace in the code */
        set[i] = f->has[i] && i < 30 ? '1' : '0';
    (void)snprintf(set + NUMBERS, 64, "%.60s", ev_json_text(genome, "start", ""));
    ev_sha256 sha = ev_sha256_of(set, strlen(set));
    memcpy(f->ir, sha.hex, sizeof f->ir);
    set[LOWERED] = '0';
    sha = ev_sha256_of(set, strlen(set));
    memcpy(f->code, sha.hex, sizeof f->code);
}

static double time_of(const fake *f, const json_t *genome) {
    double ns = strcmp(ev_json_text(genome, "start", ""), f->t->starts[0].name) == 0 ? 1000 : 900;
    for (size_t i = 0; i < sizeof gains / sizeof gains[0]; i++)
        ns -= f->has[gains[i]] ? 100 : 0;
    ns -= f->has[CHEAT] ? 300 : 0;
    ns -= f->has[PAIR_A] && f->has[PAIR_B] ? 150 : 0;
    for (int i = 24; i < 30; i++)
        ns += f->has[i] ? i : 0;
    return ns + 2 * (double)json_object_size(json_object_get(genome, "macros"));
}

static json_t *draw(const json_t *message, json_int_t child) {
    json_t *parents = json_object_get(message, "parents");
    json_t *genome = json_deep_copy(json_array_get(parents, 0));
    json_t *edits = json_object_get(genome, "edits");
    size_t at = 0;
    json_t *edit = NULL;
    json_array_foreach(json_object_get(json_array_get(parents, 1), "edits"), at, edit)(void)
        json_array_append(edits, edit);
    size_t steps = json_array_size(json_object_get(message, "steps"));
    ev_pcg rng = ev_pcg_child(
        (uint64_t)json_integer_value(json_array_get(json_object_get(message, "stream"), 0)), 1, 2,
        (uint32_t)child);
    for (size_t i = 0; i < steps; i++)
        (void)json_array_append_new(
            edits, json_pack("{s:s,s:o}", "kind", "copy", "at",
                             json_sprintf("i%u", (unsigned)ev_pcg_below(&rng, NUMBERS))));
    return genome;
}

static void stage_is(fake *f, const char *name) {
    json_t *m = message_new(MESSAGE_STAGE);
    (void)json_object_set_new(m, "stage", json_string(name));
    say(f, m);
}

static json_t *with_text(message_kind kind, const char *key, const char *value) {
    json_t *m = message_new(kind);
    (void)json_object_set_new(m, key, json_string(value));
    return m;
}

static void add_hashes(const fake *f, json_t *m, const json_t *genome) {
    char *text = ev_json_print(genome, true);
    ev_sha256 sha = ev_sha256_of(text, strlen(text));
    free(text);
    (void)json_object_set_new(m, "genome_sha256", json_string(sha.hex));
    (void)json_object_set_new(m, "ir_sha256", json_string(f->ir));
    (void)json_object_set_new(m, "ptx_sha256", json_string(f->code));
    (void)json_object_set_new(m, "ptx", json_string(f->code));
    (void)json_object_set_new(m, "entry", json_string("fake"));
    (void)json_object_set_new(m, "words", json_string("words\n"));
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

static void score_it(fake *f, const json_t *genome, bool promotes) {
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
    json_t *m = message_new(MESSAGE_DONE);
    (void)json_object_set_new(m, "score", score_to_json(&s));
    add_hashes(f, m, genome);
    say(f, m);
}

/* All that take the same time ran alike. */
static bool ask_how_it_ran(fake *f, message_kind kind, const json_t *genome) {
    char text[96];
    (void)snprintf(text, sizeof text, "%d %.3f", kind, time_of(f, genome));
    ev_sha256 sha = ev_sha256_of(text, strlen(text));
    return f->has[TRAPS] || ask(f, with_text(kind, "sha256", sha.hex));
}

static void recall(fake *f) {
    json_t *m = message_new(MESSAGE_DONE);
    score s = {.stopped = GATE_NONE, .small_ns = 1, .recalled = true};
    (void)json_object_set_new(m, "score", score_to_json(&s));
    say(f, m);
}

static void evaluate(fake *f, json_t *genome, bool asks) {
    understand(f, genome);
    stage_is(f, "emit");
    if (f->has[FAILS]) {
        json_t *m = with_text(MESSAGE_FAILED, "gate", "verify");
        (void)json_object_set_new(m, "reason", json_string("edit 1 does not apply"));
        say(f, m);
        return;
    }
    if (f->has[ABORTS])
        abort();
    bool is_new = ask(f, with_text(MESSAGE_IR, "sha256", f->ir)) &&
                  ask(f, with_text(MESSAGE_SKETCH, "sha256", f->code));
    bool fresh = is_new && ask_how_it_ran(f, MESSAGE_SKETCH_RAN, genome);
    bool built = fresh && ask(f, with_text(MESSAGE_PTX, "sha256", f->code));
    if ((is_new && !fresh) || (built && !ask_how_it_ran(f, MESSAGE_RAN, genome)))
        recall(f);
    else if (!built && asks)
        say(f, message_new(MESSAGE_DONE));
    else
        score_it(f, genome, false);
}

static void misbehave(fake *f, json_int_t child) {
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
}

/* Wants a thing, and makes it where no other worker did; EVOKE_SHELF names a file to note it in. */
static void use_shelf(fake *f) {
    const char *path = getenv("EVOKE_SHELF");
    int fd = path ? open(path, O_CREAT | O_APPEND | O_WRONLY, 0600) : -1;
    if (fd < 0)
        return;
    say(f, with_text(MESSAGE_WANT, "key", "thing"));
    json_t *answer = hear(f);
    if (message_kind_of(answer) == MESSAGE_GO) {
        json_t *m = with_text(MESSAGE_MADE, "key", "thing");
        (void)json_object_set_new(m, "value", json_pack("[f,s]", 0.1, "made"));
        say(f, m);
        (void)!write(fd, "made\n", 5);
    } else {
        json_t *value = json_object_get(answer, "value");
        bool same = json_number_value(json_array_get(value, 0)) == 0.1;
        (void)!write(fd, same ? "used\n" : "odd!\n", 5);
    }
    json_decref(answer);
    (void)close(fd);
}

static void do_child(fake *f, const json_t *message) {
    json_int_t child = json_integer_value(json_array_get(json_object_get(message, "stream"), 3));
    misbehave(f, child);
    use_shelf(f);
    if (getenv("EVOKE_SLOW"))
        (void)usleep(4000);
    json_t *genome = draw(message, child);
    bool opens = json_array_size(json_object_get(message, "steps")) == 0;
    json_t *drawn = with_text(MESSAGE_DRAWN, "operators", opens ? "start" : "copy");
    (void)json_object_set(drawn, "genome", genome);
    if (ask(f, drawn))
        evaluate(f, genome, true);
    else
        say(f, message_new(MESSAGE_DONE));
    json_decref(genome);
}

static void do_check(fake *f, const json_t *genome) {
    understand(f, genome);
    json_t *cases = json_array();
    for (size_t i = 0; i < f->t->case_count; i++)
        (void)json_array_append_new(cases,
                                    json_pack("{s:s,s:b,s:f,s:f}", "name", f->t->cases[i].name,
                                              "ok", 1, "ns", time_of(f, genome), "error", 1e-6));
    json_t *m = message_new(MESSAGE_DONE);
    (void)json_object_set_new(m, "cases", cases);
    add_hashes(f, m, genome);
    say(f, m);
}

static void do_open(fake *f, const json_t *message) {
    ev_error err;
    if (getenv("EVOKE_BAD_BASELINE")) {
        json_t *m = with_text(MESSAGE_ERROR, "status", "bad");
        (void)json_object_set_new(m, "text", json_string("the baseline disagrees with its oracle"));
        say(f, m);
        return;
    }
    task_free(f->t);
    f->t = NULL;
    must(task_open(ev_json_text(message, "task", ""), &f->t, &err), &err);
    json_t *starts = json_array(), *times = json_object();
    for (size_t i = 0; i < f->t->start_count; i++) {
        json_t *sites = json_array();
        for (int k = 0; k < IR_EDIT_COUNT; k++)
            (void)json_array_append_new(sites, json_integer(3));
        (void)json_array_append_new(
            starts, json_pack("{s:s,s:o}", "name", f->t->starts[i].name, "sites", sites));
    }
    for (size_t i = 0; i < f->t->case_count; i++)
        (void)json_object_set_new(times, f->t->cases[i].name, json_real(2000));
    json_t *m = message_new(MESSAGE_READY);
    (void)json_object_set_new(m, "task_sha256", json_string(f->t->sha256.hex));
    (void)json_object_set_new(m, "starts", starts);
    (void)json_object_set_new(m, "modelled", json_true());
    (void)json_object_set_new(m, "baseline", json_pack("{s:f}", "ns", 1000.0));
    (void)json_object_set_new(m, "baseline_ns", times);
    if (getenv("EVOKE_OTHER_CASES"))
        (void)json_object_set_new(m, "drawn", json_pack("[s,i]", "odd:n=3", (int)getpid()));
    say(f, m);
}

static void do_hello(fake *f) {
    json_t *m = message_new(MESSAGE_HELLO);
    const char *version = getenv("EVOKE_OTHER_VERSION");
    (void)json_object_set_new(m, "protocol", json_integer(PROTOCOL_VERSION));
    (void)json_object_set_new(m, "evoke", json_string(version ? version : EVOKE_VERSION));
    (void)json_object_set_new(m, "llvm", json_string(ir_llvm_version()));
    if (getenv("EVOKE_ALWAYS_DIES"))
        (void)kill(getpid(), SIGKILL);
    say(f, m);
}

int fake_worker_serve(void) {
    fake f = {.line = {.in = 0, .out = 1}};
    json_t *m = NULL;
    while ((m = hear(&f)) != NULL) {
        json_t *genome = json_object_get(m, "genome");
        switch (message_kind_of(m)) {
        case MESSAGE_HELLO:
            do_hello(&f);
            break;
        case MESSAGE_OPEN:
            do_open(&f, m);
            break;
        case MESSAGE_CHILD:
            do_child(&f, m);
            break;
        case MESSAGE_SCORE:
            evaluate(&f, genome, false);
            break;
        case MESSAGE_PROMOTE:
            understand(&f, genome);
            score_it(&f, genome, true);
            break;
        default:
            do_check(&f, genome);
            break;
        }
        json_decref(m);
    }
    task_free(f.t);
    channel_free(&f.line);
    return 0;
}
