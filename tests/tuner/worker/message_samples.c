/* Samples: a function a member of `message`; a row of messages.def with a member of its own does
 * not compile until it has one here. */
#include "tests/tuner/worker/message_samples.h"

#include "tests/genomes.h"

#include <stdio.h>
#include <string.h>

static void put_hash(char hash[EV_SHA256_HEX]) {
    ev_sha256 sha = ev_sha256_of("sample", 6);
    memcpy(hash, sha.hex, EV_SHA256_HEX);
}

/* Kept by the message. */
static const ir_genome *genome(message *m, const char *start) {
    ir_genome *made = genome_from(json_pack("{s:s,s:{s:i},s:[{s:s,s:s}]}", "start", start, "macros",
                                            "N", 3, "edits", "kind", "delete", "at", "i7"));
    m->genomes[m->genome_count++] = made;
    return made;
}

static score sample_score(void) {
    score s = {.stopped = GATE_NONE,
               .ns = 123.25,
               .error = 1e-7,
               .normalised = 0.5,
               .registers = 32,
               .occupancy = 0.75,
               .thread_instructions = 4567,
               .small_ns = 11.5,
               .sketch_ns = 12.5,
               .first_ns = 3.5,
               .whole_ns = 130.125,
               .case_count = 1,
               .cases = {{.ns = 123.25, .low_ns = 120, .high_ns = 125, .error = 1e-7}}};
    snprintf(s.cases[0].name, sizeof s.cases[0].name, "time");
    return s;
}

static job_end sample_end(void) {
    job_end end = {.leaves = true};
    for (int i = 0; i < PART_COUNT; i++)
        end.seconds[i] = 0.25 + i;
    end.bold = 3;
    return end;
}

static void fill_hello(message *m) {
    m->hello = (hello_message){PROTOCOL_VERSION, "1.2.3", "19.1.7"};
}

static void fill_open(message *m) {
    m->open = (open_message){.task = "kernels/a/task.json",
                             .device = "vm:h200",
                             .role = ROLE_TIMER,
                             .splits = 5,
                             .jobs = 3,
                             .watchdog = 20.5,
                             .holds_never = true};
}

static void fill_ready(message *m) {
    static const char *drawn[] = {"odd:n=3", "odd:n=5"};
    static case_time times[] = {{"time", 100.5}, {"wide", 200.25}};
    static ready_start starts[2];
    for (int s = 0; s < 2; s++) {
        starts[s].name = s == 0 ? "textbook" : "hand";
        for (size_t k = 0; k < IR_EDIT_COUNT; k++)
            starts[s].sites[k] = 10 + k;
    }
    m->ready = (ready_message){.gpu_name = "H200",
                               .driver = "CUDA driver 13.0",
                               .sm = 90,
                               .modelled = true,
                               .starts = starts,
                               .start_count = 2,
                               .baseline = times,
                               .baseline_count = 2,
                               .floors = times + 1,
                               .floor_count = 1,
                               .drawn = drawn,
                               .drawn_count = 2};
    put_hash(m->ready.task_sha256);
}

static void fill_child(message *m) {
    m->child.recipe =
        (recipe){.parents = {genome(m, "textbook"), genome(m, "hand")},
                 .parent_count = 2,
                 .made = RECIPE_SET,
                 .steps = {{.arms = {0, 1}, .count = 2}, {.arms = {2}, .count = 1}},
                 .step_count = 2,
                 .stock = {genome(m, "hand")},
                 .stock_count = 1,
                 .tabu = {0xfedcba9876543210u, 7},
                 .tabu_count = 2,
                 .wrong = {0x123456789abcdef0u},
                 .wrong_count = 1,
                 .by_heat = true,
                 .without = 0x8000000000000001u,
                 .stream = {.seed = UINT64_MAX - 1, .child = 77, .island = 4, .generation = 5},
                 .reach = {.sketch = 1.5, .built = 2.5, .first = 3.5, .error = 1e-6},
                 .sketch = SKETCH_IGNORED,
                 .estimate = {.times = true, .near = 4.5, .due = 5.5}};
}

static void fill_variant(message *m) {
    m->variant.genome = genome(m, "hand");
}

static void fill_screened(message *m) {
    m->screened = (screened_message){genome(m, "hand"), ".version 8.5\n", sample_score()};
}

static void fill_promote(message *m) {
    m->promote =
        (promote_message){genome(m, "hand"), {.ns = 10, .baseline_ns = 20, .is_last = true}};
}

static void fill_stage(message *m) {
    m->stage.stage = STAGE_OPTIMISE;
}

static void fill_drawn(message *m) {
    m->drawn = (drawn_message){.genome = genome(m, "hand"), .operators = "crossover,delete"};
    put_hash(m->drawn.sha256);
}

static void fill_hash(message *m) {
    put_hash(m->hash.sha256);
}

static void fill_want(message *m) {
    m->want.key = "code textbook";
}

static void fill_made(message *m) {
    m->source = json_pack("{s:i}", "any", 3);
    m->made = (made_message){"code textbook", m->source};
}

static void fill_nothing(message *m) {
    m->nothing.unused = 0;
}

static void fill_passed(message *m) {
    m->passed = (passed_message){".version 8.5\n", sample_score(), sample_end()};
}

static void fill_done(message *m) {
    static case_check cases[] = {{"wide", true, 100.5, 99, 102, 1e-7, ""},
                                 {"odd", false, 0, 0, 0, 1e300, "element 3 is wrong"}};
    m->done = (done_message){.has_score = true,
                             .score = sample_score(),
                             .has_code = true,
                             .code = {.ptx = ".version 8.5\n",
                                      .entry = "twice",
                                      .may_alias = UINT64_C(0x8000000000000003)},
                             .words = "deletes a load\n",
                             .has_cases = true,
                             .cases = cases,
                             .case_count = 2,
                             .end = sample_end()};
    put_hash(m->done.code.genome_sha256);
    put_hash(m->done.code.ir_sha256);
    put_hash(m->done.code.ptx_sha256);
}

static void fill_failed(message *m) {
    m->failed = (failed_message){GATE_EMIT, "LLVM gave up", sample_end()};
}

static void fill_fatal(message *m) {
    m->fatal = (fatal_message){STAGE_EMIT, "segmentation fault"};
}

static void fill_error(message *m) {
    m->error = (error_message){EV_BAD, "the task has no start 'x'"};
}

message message_sample(message_kind kind) {
    message m = {.kind = kind};
    switch (kind) {
#define MESSAGE(id, name, member, from, meaning)                                                   \
    case MESSAGE_##id:                                                                             \
        fill_##member(&m);                                                                         \
        break;
#include "tuner/worker/messages.def"
#undef MESSAGE
    case MESSAGE_COUNT:
        break;
    }
    return m;
}
