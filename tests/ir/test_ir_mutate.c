/* Mutation: its randomness, its places, its hints; marked and lined code. */
#include "tests/ir/ir_rig.h"

static void mutation_depends_on_its_arguments_alone(void **state) {
    (void)state;
    ir_base *base = load(&everything);
    for (int kind = 0; kind < IR_EDIT_LOCAL_COUNT; kind++) {
        ir_genome *parent = mutated(base, (uint64_t)kind, 3);
        ev_pcg one = ev_pcg_seed(7, (uint64_t)kind), two = one;
        ir_genome *a = NULL, *b = NULL;
        ev_error err;
        ev_status status = ir_mutate(base, parent, (ir_edit_kind)kind, NULL, &one, &a, &err);
        ir_genome_free(mutated(base, 99, 2));
        assert_int_equal(ir_mutate(base, parent, (ir_edit_kind)kind, NULL, &two, &b, &err), status);
        if (status == EV_OK) {
            ev_sha256 x = ir_genome_sha256(a), y = ir_genome_sha256(b);
            assert_true(ev_sha256_equal(&x, &y));
        }
        ir_genome_free(a);
        ir_genome_free(b);
        ir_genome_free(parent);
    }
    ir_base_free(base);
}

static uint64_t last_mark(const ir_genome *genome) {
    json_t *json = ir_genome_to_json(genome);
    const json_t *edits = json_object_get(json, "edits");
    uint64_t mark = ir_edit_mark(json_array_get(edits, json_array_size(edits) - 1));
    json_decref(json);
    return mark;
}

/* Every kind: what it drew before comes again without hints, and not with them. */
static void what_is_spent_is_not_drawn(void **state) {
    (void)state;
    enum { TRIES = 40 };
    ir_base *base = load(&everything);
    ir_genome *none = ir_genome_new("textbook");
    unsigned again = 0;
    for (int kind = 0; kind < IR_EDIT_LOCAL_COUNT; kind++) {
        uint64_t marks[TRIES];
        ir_hints hints = {.spent = marks};
        for (uint64_t i = 0; i < TRIES; i++) {
            ev_pcg rng = ev_pcg_seed(i % (TRIES / 2), (uint64_t)kind), same = rng;
            ir_genome *free_child = NULL, *child = NULL;
            ev_error err;
            if (ir_mutate(base, none, (ir_edit_kind)kind, NULL, &rng, &free_child, &err) != EV_OK)
                continue;
            uint64_t mark = last_mark(free_child);
            for (size_t k = 0; k < hints.spent_count; k++)
                again += marks[k] == mark;
            if (ir_mutate(base, none, (ir_edit_kind)kind, &hints, &same, &child, &err) == EV_OK) {
                for (size_t k = 0; k < hints.spent_count; k++)
                    assert_true(marks[k] != last_mark(child));
                marks[hints.spent_count++] = last_mark(child);
            }
            ir_genome_free(free_child);
            ir_genome_free(child);
        }
    }
    assert_true(again > 200);
    ir_genome_free(none);
    ir_base_free(base);
}

/* Only where there is heat, and in proportion to it. */
static void places_are_drawn_by_heat(void **state) {
    (void)state;
    ir_base *base = load(&everything);
    size_t count = ir_base_insn_count(base), hits[2] = {0}, at[2] = {0}, found = 0;
    ir_genome *none = ir_genome_new("textbook");
    double *heat = calloc(count, sizeof *heat);
    for (size_t i = 0; i < count && found < 2; i++) {
        char *text = ir_base_insn_text(base, i);
        if (strstr(text, "fmul"))
            at[found++] = i;
        free(text);
    }
    assert_int_equal(found, 2);
    ir_hints hints = {.heat = heat};
    heat[at[0]] = 9;
    heat[at[1]] = 3;
    for (int kind = 0; kind < IR_EDIT_LOCAL_COUNT;
         kind++) { /* knobs and arguments are at no place */
        ev_pcg rng = ev_pcg_seed(2, 3);
        ir_genome *child = NULL;
        ev_error err;
        if (ir_mutate(base, none, (ir_edit_kind)kind, &hints, &rng, &child, &err) == EV_OK)
            ir_genome_free(child);
    }
    for (uint64_t i = 0; i < 200; i++) {
        ev_pcg rng = ev_pcg_seed(i, 1);
        ir_genome *child = NULL;
        ev_error err;
        assert_int_equal(ir_mutate(base, none, IR_EDIT_FAST_MATH, &hints, &rng, &child, &err),
                         EV_OK);
        json_t *json = ir_genome_to_json(child);
        const json_t *edit = json_array_get(json_object_get(json, "edits"), 0);
        size_t place = strtoul(json_string_value(json_object_get(edit, "at")) + 1, NULL, 10);
        assert_true(place == at[0] || place == at[1]);
        hits[place == at[1]]++;
        json_decref(json);
        ir_genome_free(child);
    }
    assert_true(hits[0] > 120 && hits[0] < 180); /* 150 of 200 */
    free(heat);
    ir_genome_free(none);
    ir_base_free(base);
}

/* Each line is an instruction's number plus 1, and most instructions show. */
static void marked_code_names_its_instructions(void **state) {
    (void)state;
    ir_base *base = load(&everything);
    char *ptx = NULL;
    size_t bytes = 0, lines = 0;
    ev_error err;
    assert_int_equal(ir_base_marked_ptx(base, &ptx, &bytes, &err), EV_OK);
    for (const char *p = ptx; (p = strstr(p, "\t.loc\t")); p++) {
        unsigned file = 0, line = 0;
        assert_int_equal(sscanf(p, "\t.loc\t%u %u", &file, &line), 2);
        assert_true(line <= ir_base_insn_count(base));
        lines += line > 0;
    }
    assert_true(lines > ir_base_insn_count(base) / 3);
    free(ptx);
    ir_base_free(base);
}

/* The instructions of a PTX text alone, without labels, directives and comments; malloc'ed. */
static char *instructions_of(const char *ptx, size_t bytes) {
    char *out = calloc(bytes + 1, 1), *to = out;
    for (size_t at = 0, length; at < bytes; at += length + 1) {
        const char *line = ptx + at, *end = memchr(line, '\n', bytes - at);
        length = end != NULL ? (size_t)(end - line) : bytes - at;
        bool is_code = length > 2 && line[0] == '\t' && memchr(line, ';', length) != NULL;
        if (!is_code || line[1] == '.' || line[1] == '/')
            continue;
        memcpy(to, line, length);
        to += length;
    }
    return out;
}

/* Lines of the source, in the very code that is built without them. */
static void lined_code_is_the_same_code(void **state) {
    (void)state;
    ir_base *base = load(&everything);
    ir_genome *none = ir_genome_new("textbook");
    ir_build *build = NULL;
    char *ptx = NULL;
    size_t bytes = 0, plain_bytes = 0, lines = 0;
    ev_error err;
    assert_int_equal(ir_build_new(base, none, &build, &err), EV_OK);
    for (int stage = 0; stage < IR_STAGE_COUNT; stage++)
        assert_int_equal(ir_build_run(build, (ir_stage)stage, &err), EV_OK);
    const char *plain = ir_build_ptx(build, &plain_bytes);
    assert_int_equal(ir_base_lined_ptx(base, &ptx, &bytes, &err), EV_OK);
    char *a = instructions_of(plain, plain_bytes), *b = instructions_of(ptx, bytes);
    assert_true(strlen(a) > 1000);
    assert_string_equal(a, b);
    unsigned last = 0;
    for (size_t i = 0; i < ir_base_insn_count(base); i++)
        last = ir_base_insn_line(base, i) > last ? ir_base_insn_line(base, i) : last;
    for (const char *p = ptx; (p = strstr(p, "\t.loc\t")); p++) {
        unsigned file = 0, line = 0;
        assert_int_equal(sscanf(p, "\t.loc\t%u %u", &file, &line), 2);
        assert_true(line <= last);
        lines += line > 0;
    }
    assert_true(lines > 20);
    free(a);
    free(b);
    free(ptx);
    ir_build_free(build);
    ir_genome_free(none);
    ir_base_free(base);
}

static void a_kind_without_a_place_says_what_it_needs(void **state) {
    (void)state;
    ir_base *base = load_text(loop, 90);
    ir_genome *parent = ir_genome_new("textbook");
    ir_genome *child = NULL;
    ev_pcg rng = ev_pcg_seed(1, 1);
    ev_error err;
    assert_int_equal(ir_mutate(base, parent, IR_EDIT_DROP_BARRIER, NULL, &rng, &child, &err),
                     EV_BAD);
    assert_null(child);
    assert_string_equal(err.text, "drop-barrier: no place for it (it needs a barrier of the block "
                                  "or the warp)");
    ir_genome_free(parent);
    ir_base_free(base);
}

static void the_version_is_llvms(void **state) {
    (void)state;
    assert_int_equal(strncmp(ir_llvm_version(), "19.", 3), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mutation_depends_on_its_arguments_alone),
        cmocka_unit_test(what_is_spent_is_not_drawn),
        cmocka_unit_test(places_are_drawn_by_heat),
        cmocka_unit_test(marked_code_names_its_instructions),
        cmocka_unit_test(lined_code_is_the_same_code),
        cmocka_unit_test(a_kind_without_a_place_says_what_it_needs),
        cmocka_unit_test(the_version_is_llvms),
    };
    return cmocka_run_group_tests(tests, ir_rig_begin, ir_rig_end);
}
