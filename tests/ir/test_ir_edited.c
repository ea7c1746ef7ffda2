/* What a draw hands over to the build is the very module that a replay of the genome makes. */
#include "ir/ir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define EVERYTHING "tests/ir/everything.cu", "everything"

enum { GENOMES = 120, MOST_STEPS = 12 };

/* No pipeline comes after the genomes of an optimised base: the hash is of the edited module as it
 * is. Some kinds of edits have places in loops that are still rolled only. */
static ir_base *load(const char *path, const char *entry, bool optimised) {
    static const int64_t constants[] = {3, 100, 4096};
    ir_source source = {.path = path,
                        .entry = entry,
                        .include = "kernels/include",
                        .sm = 90,
                        .optimised = optimised,
                        .constants = constants,
                        .constant_count = 3,
                        .block = {256, 1, 1}};
    ev_error err;
    ir_base *base = NULL;
    if (ir_base_load(&source, &base, &err) != EV_OK)
        fail_msg("%s", err.text);
    return base;
}

static ir_genome *bare(bool optimised) {
    ir_genome *genome = ir_genome_new("textbook");
    assert_non_null(genome);
    ir_genome_set_optimised(genome, optimised);
    assert_true(optimised || ir_genome_make_light(genome));
    return genome;
}

/* Takes `edited` over. The status of the first stage that fails, or the IR's hash. */
static ev_status hash_of(const ir_base *base, const ir_genome *genome, ir_edited *edited,
                         ev_sha256 *out) {
    ir_build *build = NULL;
    ev_error err;
    assert_int_equal(ir_build_new(base, genome, &build, &err), EV_OK);
    ir_build_take_edited(build, edited);
    ev_status status = EV_OK;
    for (int s = 0; status == EV_OK && s <= IR_STAGE_OPTIMISE; s++)
        status = ir_build_run(build, (ir_stage)s, &err);
    if (status == EV_OK)
        *out = ir_build_ir_sha256(build);
    ir_build_free(build);
    return status;
}

typedef struct counts {
    unsigned handed, dropped, verified, kinds[IR_EDIT_COUNT];
} counts;

static void compare(const ir_base *base, const ir_genome *genome, ir_edited *edited, counts *n) {
    ev_sha256 drawn, replayed;
    n->handed += edited != NULL;
    n->dropped += edited == NULL;
    ev_status status = hash_of(base, genome, edited, &drawn);
    assert_int_equal(hash_of(base, genome, NULL, &replayed), status);
    if (status != EV_OK)
        return;
    n->verified++;
    if (!ev_sha256_equal(&drawn, &replayed)) {
        char *text = json_dumps(ir_genome_to_json(genome), JSON_INDENT(1));
        fail_msg("another module than the replay's:\n%s", text);
    }
}

/* One genome by so many steps, of which some find no place; and what each draws is the same as
 * without the module of the last. */
static ir_edited *draw_steps(const ir_base *base, ev_pcg *rng, ir_genome **genome, counts *n) {
    ir_edited *edited = NULL;
    for (uint32_t steps = 1 + ev_pcg_below(rng, MOST_STEPS); steps > 0; steps--) {
        ir_edit_kind kind = (ir_edit_kind)ev_pcg_below(rng, IR_EDIT_LOCAL_COUNT);
        ir_genome *child = NULL, *alone = NULL;
        ev_error err;
        ev_pcg same = *rng;
        ev_status status = ir_mutate_edited(base, *genome, kind, NULL, rng, &edited, &child, &err);
        assert_int_equal(ir_mutate(base, *genome, kind, NULL, &same, &alone, &err), status);
        assert_memory_equal(&same, rng, sizeof same);
        if (status != EV_OK)
            continue;
        ev_sha256 a = ir_genome_sha256(child), b = ir_genome_sha256(alone);
        assert_string_equal(a.hex, b.hex);
        n->kinds[kind]++;
        ir_genome_free(alone);
        ir_genome_free(*genome);
        *genome = child;
    }
    return edited;
}

static void the_drawn_module_is_the_replayed_one(void **state) {
    (void)state;
    ir_base *bases[] = {load(EVERYTHING, false), load(EVERYTHING, true),
                        load("tests/ir/split-sum.ll", "k", true)};
    counts n = {0};
    for (uint32_t i = 0; i < GENOMES; i++) {
        ev_pcg rng = ev_pcg_child(31, 0, 0, i);
        bool optimised = i % 3 != 0;
        ir_genome *genome = bare(optimised);
        ir_edited *edited = draw_steps(bases[i % 3], &rng, &genome, &n);
        compare(bases[i % 3], genome, edited, &n);
        ir_genome_free(genome);
    }
    print_message("%u handed over, %u not, %u verified\n", n.handed, n.dropped, n.verified);
    assert_true(n.handed > GENOMES / 2 && n.verified > GENOMES / 2);
    for (int kind = 0; kind < IR_EDIT_LOCAL_COUNT; kind++) {
        if (n.kinds[kind] == 0)
            fail_msg("%s was never drawn", ir_edit_name((ir_edit_kind)kind));
    }
    for (size_t i = 0; i < 3; i++)
        ir_base_free(bases[i]);
}

/* The launch bounds that the first one wrote into the module are not in the genome's. */
static void a_knob_that_is_replaced_is_not_handed_over(void **state) {
    (void)state;
    ir_base *base = load(EVERYTHING, true);
    ir_genome *genome = bare(true);
    ir_edited *edited = NULL;
    ev_pcg rng = ev_pcg_seed(5, 6);
    ev_error err;
    for (int i = 0; i < 2; i++) {
        ir_genome *child = NULL;
        ev_status status;
        do {
            status = ir_mutate_edited(base, genome, IR_EDIT_MAX_REGISTERS, NULL, &rng, &edited,
                                      &child, &err);
        } while (status == EV_BAD);
        assert_int_equal(status, EV_OK);
        assert_true((edited != NULL) == (i == 0));
        ir_genome_free(genome);
        genome = child;
    }
    assert_int_equal(ir_genome_edit_count(genome), 1);
    ir_genome_free(genome);
    ir_base_free(base);
}

/* The child's module is then opened without the parent's knob. */
static void a_knob_is_replaced_before_the_module_is_made(void **state) {
    (void)state;
    static const ir_edit_kind kinds[] = {IR_EDIT_MAX_REGISTERS, IR_EDIT_MIN_BLOCKS};
    ir_base *base = load(EVERYTHING, true);
    for (size_t k = 0; k < 2; k++) {
        ir_genome *genome = bare(true);
        ir_edited *edited = NULL;
        ev_pcg rng = ev_pcg_child(7, 0, 0, (uint32_t)k);
        ev_error err;
        counts n = {0};
        for (int i = 0; i < 4; i++) {
            ir_edit_kind kind = i == 0 ? IR_EDIT_SINK : kinds[k];
            ir_genome *child = NULL;
            while (ir_mutate_edited(base, genome, kind, NULL, &rng, &edited, &child, &err) ==
                   EV_BAD)
                assert_true(i > 0);
            assert_non_null(child);
            assert_non_null(edited);
            compare(base, child, edited, &n);
            edited = NULL;
            ir_genome_free(genome);
            genome = child;
        }
        assert_int_equal(n.verified, 4);
        assert_int_equal(ir_genome_edit_count(genome), 2);
        ir_genome_free(genome);
    }
    ir_base_free(base);
}

static ir_genome *genome_of(const char *text) {
    ev_error err;
    ir_genome *genome = NULL;
    json_t *json = json_loads(text, 0, NULL);
    assert_int_equal(ir_genome_from_json(json, &genome, &err), EV_OK);
    json_decref(json);
    return genome;
}

/* Without the one of them that is to be replaced, it could be made. */
static void two_knobs_that_exclude_each_other_stay_refused(void **state) {
    (void)state;
    ir_base *base = load(EVERYTHING, true);
    ir_genome *genome = genome_of("{\"start\":\"textbook\",\"base\":\"optimised\","
                                  "\"edits\":[{\"kind\":\"min-blocks\",\"option\":2},"
                                  "{\"kind\":\"max-registers\",\"option\":64}]}");
    for (ir_edit_kind kind = IR_EDIT_MIN_BLOCKS; kind <= IR_EDIT_MAX_REGISTERS; kind++) {
        ir_genome *child = NULL;
        ev_error err;
        ev_pcg rng = ev_pcg_seed(1, 2), same = rng;
        assert_int_equal(ir_mutate(base, genome, kind, NULL, &rng, &child, &err), EV_BAD);
        assert_non_null(strstr(err.text, "edit 1 (max-registers)"));
        assert_memory_equal(&same, &rng, sizeof rng);
    }
    ir_genome_free(genome);
    ir_base_free(base);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_drawn_module_is_the_replayed_one),
        cmocka_unit_test(a_knob_that_is_replaced_is_not_handed_over),
        cmocka_unit_test(a_knob_is_replaced_before_the_module_is_made),
        cmocka_unit_test(two_knobs_that_exclude_each_other_stay_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
