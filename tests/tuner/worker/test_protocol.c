/* The protocol: every message of messages.def travels whole, and is refused with the names of
 * message and field where a field is missing, unknown or wrong. */
#include "tests/tuner/worker/message_samples.h"
#include "tuner/search/draw.h"

#include "base/json.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/ok.h"

static ev_error err;

/* What the channel would bring to the other side. */
static json_t *on_the_wire(const message *m) {
    json_t *object = NULL;
    OK(message_encode(m, &object, &err));
    char *text = json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(17));
    json_decref(object);
    json_t *there = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    free(text);
    assert_non_null(there);
    return there;
}

static json_t *sample_on_the_wire(message_kind kind) {
    message m = message_sample(kind);
    json_t *object = on_the_wire(&m);
    message_free(&m);
    return object;
}

/* ---- there and back ---- */

static void expect_same_back(message_kind kind, json_t *object) {
    message back = {0};
    assert_string_equal(ev_json_text(object, "type", ""), message_name(kind));
    OK(message_decode(json_deep_copy(object), &back, &err));
    assert_int_equal(back.kind, kind);
    json_t *again = on_the_wire(&back);
    assert_true(json_equal(object, again));
    json_decref(again);
    message_free(&back);
}

static void every_message_travels_whole(void **state) {
    (void)state;
    for (int kind = 0; kind < MESSAGE_COUNT; kind++) {
        json_t *object = sample_on_the_wire((message_kind)kind);
        expect_same_back((message_kind)kind, object);
        json_decref(object);
    }
}

static message decoded_sample(message_kind kind) {
    message back = {0};
    OK(message_decode(sample_on_the_wire(kind), &back, &err));
    return back;
}

static bool same_genome(const ir_genome *a, const ir_genome *b) {
    ev_sha256 x = ir_genome_sha256(a), y = ir_genome_sha256(b);
    return ev_sha256_equal(&x, &y);
}

/* That no field of a struct is left out of its list. */
static void a_recipe_keeps_all_its_parts(void **state) {
    (void)state;
    message m = message_sample(MESSAGE_CHILD), back = decoded_sample(MESSAGE_CHILD);
    recipe a = m.child.recipe, b = back.child.recipe;
    assert_true(same_genome(a.parents[0], b.parents[0]) && same_genome(a.parents[1], b.parents[1]));
    assert_true(same_genome(a.stock[0], b.stock[0]));
    a.parents[0] = a.parents[1] = a.stock[0] = NULL;
    b.parents[0] = b.parents[1] = b.stock[0] = NULL;
    assert_memory_equal(a.steps, b.steps, sizeof a.steps);
    assert_memory_equal(a.tabu, b.tabu, sizeof a.tabu);
    assert_memory_equal(a.wrong, b.wrong, sizeof a.wrong);
    assert_int_equal(a.wrong_count, b.wrong_count);
    assert_memory_equal(&a.stream, &b.stream, sizeof a.stream);
    assert_memory_equal(&a.reach, &b.reach, sizeof a.reach);
    assert_true(a.parent_count == b.parent_count && a.made == b.made);
    assert_true(a.step_count == b.step_count && a.stock_count == b.stock_count);
    assert_true(a.tabu_count == b.tabu_count && a.by_heat == b.by_heat && a.without == b.without &&
                a.sketch == b.sketch);
    assert_true(a.estimate.times == b.estimate.times && a.estimate.near == b.estimate.near);
    assert_true(a.estimate.due == b.estimate.due);
    message_free(&m);
    message_free(&back);
}

static void the_opening_of_a_task_keeps_all_its_parts(void **state) {
    (void)state;
    message m = decoded_sample(MESSAGE_OPEN);
    assert_string_equal(m.open.task, "kernels/a/task.json");
    assert_string_equal(m.open.device, "vm:h200");
    assert_true(m.open.role == ROLE_TIMER && m.open.splits == 5 && m.open.jobs == 3);
    assert_true(m.open.watchdog == 20.5 && m.open.holds_never);
    message_free(&m);
    m = decoded_sample(MESSAGE_READY);
    const ready_message *r = &m.ready;
    assert_string_equal(r->gpu_name, "H200");
    assert_string_equal(r->driver, "CUDA driver 13.0");
    assert_true(r->sm == 90 && r->modelled && r->start_count == 2 && r->drawn_count == 2);
    assert_string_equal(r->starts[1].name, "hand");
    assert_true(r->starts[1].sites[IR_EDIT_COUNT - 1] == 10 + IR_EDIT_COUNT - 1);
    assert_string_equal(r->baseline[1].name, "wide");
    assert_true(r->baseline[1].ns == 200.25);
    assert_string_equal(r->drawn[1], "odd:n=5");
    message_free(&m);
}

static void a_result_keeps_all_its_parts(void **state) {
    (void)state;
    message m = decoded_sample(MESSAGE_DONE);
    const done_message *d = &m.done;
    assert_true(d->has_score && d->has_code && d->has_cases && d->end.leaves);
    assert_true(d->score.whole_ns == 130.125 && d->score.cases[0].high_ns == 125);
    assert_string_equal(d->code.entry, "twice");
    assert_true(d->code.may_alias == UINT64_C(0x8000000000000003));
    assert_string_equal(d->words, "deletes a load\n");
    assert_true(d->case_count == 2 && d->cases[0].ok && !d->cases[1].ok);
    assert_true(d->cases[0].ns == 100.5 && d->cases[1].error == 1e300);
    assert_true(d->cases[0].low_ns == 99 && d->cases[0].high_ns == 102);
    assert_string_equal(d->cases[1].reason, "element 3 is wrong");
    assert_true(d->end.seconds[PART_PROMOTE] == 0.25 + (int)PART_PROMOTE);
    message_free(&m);
    m = decoded_sample(MESSAGE_PROMOTE);
    assert_true(m.promote.bar.ns == 10 && m.promote.bar.baseline_ns == 20 && m.promote.bar.is_last);
    message_free(&m);
}

/* The end of a child that the coordinator knows. */
static void a_result_may_be_empty(void **state) {
    (void)state;
    message m = {.kind = MESSAGE_DONE}, back = {0};
    json_t *object = on_the_wire(&m);
    assert_true(json_is_null(json_object_get(object, "score")));
    expect_same_back(MESSAGE_DONE, object);
    OK(message_decode(object, &back, &err));
    assert_true(!back.done.has_score && !back.done.has_code && !back.done.has_cases);
    assert_null(back.done.words);
    message_free(&back);
}

/* ---- refusals ---- */

/* Takes `object`. */
static void expect_refusal(message_kind kind, json_t *object, const char *field, const char *what) {
    message out = {0};
    char name[80];
    err.text[0] = '\0';
    ev_status want = kind == MESSAGE_HELLO ? EV_BAD : EV_INFRA;
    ev_status status = message_decode(object, &out, &err);
    snprintf(name, sizeof name, "the message '%s'", message_name(kind));
    if (status != want || !strstr(err.text, name) || !strstr(err.text, field) ||
        !strstr(err.text, what))
        fail_msg("%s: %s, '%s' %s is refused as %d: '%s'", message_name(kind), name, field, what,
                 status, err.text);
}

/* Walks a copy of `object` as well, to the same place. */
static json_t *same_place(json_t *copy, const char *const *path, size_t depth) {
    for (size_t i = 0; i < depth; i++)
        copy = json_is_array(copy) ? json_array_get(copy, 0) : json_object_get(copy, path[i]);
    return copy;
}

/* Not what they are: any other kind of value. */
static json_t *wrong_value(const json_t *value) {
    return json_is_string(value) || json_is_boolean(value) ? json_integer(-3) : json_string("?");
}

/* Genomes, scores and entries of the base store are values to the protocol. */
static bool is_value(const char *name) {
    const char *const names[] = {"genome", "parents", "stock", "score", "value"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(names[i], name) == 0)
            return true;
    }
    return false;
}

typedef struct place {
    message_kind kind;
    json_t *root;
    const char *path[8];
    size_t depth;
} place;

static void spoil_object(place *p, json_t *object);

static void spoil_below(place *p, json_t *value, const char *name) {
    assert_true(p->depth < 8);
    p->path[p->depth++] = name;
    if (json_is_object(value))
        spoil_object(p, value);
    else if (json_is_array(value) && json_array_size(value) > 0)
        spoil_below(p, json_array_get(value, 0), "[0]");
    p->depth--;
}

static void spoil_field(place *p, const char *name, const json_t *value) {
    char field[80];
    snprintf(field, sizeof field, "%s'", name);
    json_t *copy = json_deep_copy(p->root);
    assert_int_equal(json_object_del(same_place(copy, p->path, p->depth), name), 0);
    expect_refusal(p->kind, copy, field, "is missing");
    if (strcmp(name, "value") == 0)
        return;
    copy = json_deep_copy(p->root);
    json_t *at = same_place(copy, p->path, p->depth);
    assert_int_equal(json_object_set_new(at, name, wrong_value(value)), 0);
    expect_refusal(p->kind, copy, field, "is ");
}

static void spoil_object(place *p, json_t *object) {
    const char *name = NULL;
    json_t *value = NULL;
    json_object_foreach(object, name, value) {
        if (p->depth == 0 && strcmp(name, "type") == 0)
            continue;
        spoil_field(p, name, value);
        if (!is_value(name))
            spoil_below(p, value, name);
    }
    if (p->kind == MESSAGE_HELLO) /* a later version may say more */
        return;
    json_t *copy = json_deep_copy(p->root);
    assert_int_equal(json_object_set_new(same_place(copy, p->path, p->depth), "odd", json_null()),
                     0);
    expect_refusal(p->kind, copy, "odd'", "is none of its fields");
}

static void every_field_is_missed(void **state) {
    (void)state;
    for (int kind = 0; kind < MESSAGE_COUNT; kind++) {
        place p = {.kind = (message_kind)kind, .root = sample_on_the_wire((message_kind)kind)};
        spoil_object(&p, p.root);
        json_decref(p.root);
    }
}

/* Message, place, a value there, and the refusal. */
static void values_that_are_out_of_bounds(void **state) {
    (void)state;
    static const struct {
        message_kind kind;
        const char *object, *field, *value, *what;
    } rows[] = {
        {MESSAGE_OPEN, NULL, "role", "\"boss\"", "'boss', which is none of its words"},
        {MESSAGE_OPEN, NULL, "splits", "4294967296", "is too large"},
        {MESSAGE_CHILD, NULL, "parents", "[]", "is empty"},
        {MESSAGE_CHILD, NULL, "parents", "[{}, {}, {}]", "too many"},
        {MESSAGE_CHILD, NULL, "parents", "[3]", "is no genome"},
        {MESSAGE_CHILD, NULL, "steps", "[[\"nosuch\"]]", "'nosuch'"},
        {MESSAGE_CHILD, NULL, "steps", "[[],[],[],[],[],[],[],[],[]]", "too many"},
        {MESSAGE_CHILD, NULL, "tabu", "[\"12\"]", "16 hexadecimal digits"},
        {MESSAGE_CHILD, "stream", "child", "-1", "is no count"},
        {MESSAGE_CHILD, "stream", "seed", "\"000000000000000G\"", "16 hexadecimal digits"},
        {MESSAGE_IR, NULL, "sha256", "\"abc\"", "is no SHA-256"},
        {MESSAGE_FAILED, NULL, "gate", "\"none\"", "'none'"},
        {MESSAGE_FAILED, "seconds", "build", "null", "is no number"},
        {MESSAGE_DONE, NULL, "score", "{}", "this is no score"},
        {MESSAGE_DONE, "code", "ptx", "null", "is no text"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        json_t *object = sample_on_the_wire(rows[i].kind);
        json_t *at = rows[i].object ? json_object_get(object, rows[i].object) : object;
        json_t *value = json_loads(rows[i].value, JSON_DECODE_ANY, NULL);
        assert_int_equal(json_object_set_new(at, rows[i].field, value), 0);
        expect_refusal(rows[i].kind, object, rows[i].field, rows[i].what);
    }
}

/* The place is told as a path. */
static void a_refusal_names_the_place(void **state) {
    (void)state;
    json_t *object = sample_on_the_wire(MESSAGE_READY);
    json_t *start = json_array_get(json_object_get(object, "starts"), 1);
    assert_int_equal(json_object_del(json_object_get(start, "sites"), ir_edit_name(0)), 0);
    char field[80];
    snprintf(field, sizeof field, "'starts[1].sites.%s'", ir_edit_name(0));
    expect_refusal(MESSAGE_READY, object, field, "is missing");
}

static void what_is_no_message(void **state) {
    (void)state;
    message out = {0};
    assert_int_equal(message_decode(json_pack("{s:s}", "type", "nosuch"), &out, &err), EV_INFRA);
    assert_non_null(strstr(err.text, "'nosuch'"));
    assert_int_equal(message_decode(json_pack("{s:i}", "type", 3), &out, &err), EV_INFRA);
    assert_int_equal(message_decode(json_object(), &out, &err), EV_INFRA);
    assert_non_null(strstr(err.text, "'type'"));
}

static void another_version_is_told_the_cure(void **state) {
    (void)state;
    expect_refusal(MESSAGE_HELLO, json_pack("{s:s}", "type", "hello"), "protocol", "same build");
    message m = {0};
    OK(message_decode(json_pack("{s:s,s:i,s:s,s:s,s:[i]}", "type", "hello", "protocol", 99, "evoke",
                                "99.9", "llvm", "77", "gifts", 1),
                      &m, &err));
    assert_true(m.hello.protocol == 99);
    message_free(&m);
}

/* ---- encoding ---- */

static void what_json_has_no_text_for(void **state) {
    (void)state;
    json_t *object = NULL;
    message m = {.kind = MESSAGE_OPEN, .open = {.task = "", .device = "", .watchdog = INFINITY}};
    assert_int_equal(message_encode(&m, &object, &err), EV_INFRA);
    assert_non_null(strstr(err.text, "'watchdog' is no finite number"));
    /* a compiler's words, cut inside a letter */
    m = (message){.kind = MESSAGE_FATAL, .fatal = {STAGE_EMIT, "caf\xc3"}};
    OK(message_encode(&m, &object, &err));
    assert_string_equal(ev_json_text(object, "reason", ""), "caf?");
    json_decref(object);
}

/* The last word is written without the JSON library. */
static void the_last_word_reads(void **state) {
    (void)state;
    int ends[2];
    message m = {0};
    bool got = false;
    assert_int_equal(pipe(ends), 0);
    channel c = {.in = ends[0], .out = -1};
    message_write_fatal(ends[1], STAGE_VERIFY, "abort");
    assert_int_equal(close(ends[1]), 0);
    OK(message_receive(&c, &m, &got, &err));
    assert_true(got && m.kind == MESSAGE_FATAL && m.fatal.stage == STAGE_VERIFY);
    assert_string_equal(m.fatal.reason, "abort");
    message_free(&m);
    OK(message_receive(&c, &m, &got, &err));
    assert_false(got);
    channel_free(&c);
    assert_int_equal(close(ends[0]), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_message_travels_whole),
        cmocka_unit_test(a_recipe_keeps_all_its_parts),
        cmocka_unit_test(the_opening_of_a_task_keeps_all_its_parts),
        cmocka_unit_test(a_result_keeps_all_its_parts),
        cmocka_unit_test(a_result_may_be_empty),
        cmocka_unit_test(every_field_is_missed),
        cmocka_unit_test(values_that_are_out_of_bounds),
        cmocka_unit_test(a_refusal_names_the_place),
        cmocka_unit_test(what_is_no_message),
        cmocka_unit_test(another_version_is_told_the_cure),
        cmocka_unit_test(what_json_has_no_text_for),
        cmocka_unit_test(the_last_word_reads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
