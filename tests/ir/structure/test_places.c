/* Drawing structural edits: each drawn edit applies, equal seeds draw equal edits, what was tried
 * is not drawn again, what is kept between draws changes nothing, and a child keeps what holds for
 * any base alone. */
#include "base/str.h"
#include "ir/edit.h"
#include "ir/ir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/genomes.h"
#include "tests/ok.h"

static ev_error err;

static const launch_rule rules[] = {
    {.entry = "product",
     .grid = {"ceil_div(n, 8)", "ceil_div(m, 4)", "1"},
     .block = {"8", "4", "1"},
     .shared = "0"},
    {.entry = "exchanged", .grid = {"m", "1", "1"}, .block = {"32", "1", "1"}, .shared = "0"},
    {.entry = "taps",
     .grid = {"ceil_div(m * n, 32)", "1", "1"},
     .block = {"32", "1", "1"},
     .shared = "0"},
    {.entry = "halves",
     .grid = {"ceil_div(m * ((n + 1) / 2), 32)", "1", "1"},
     .block = {"32", "1", "1"},
     .shared = "0"}};
static const launch_plan product = {.launches = &rules[0], .launch_count = 1};
static const launch_plan taps = {.launches = &rules[2], .launch_count = 1};
static const launch_plan halves = {.launches = &rules[3], .launch_count = 1};
static const launch_plan exchanged = {.launches = &rules[1], .launch_count = 1};

/* What m and n are at the timed cases of the search. */
static const ir_timed timed[5] = {[3] = {{24, 100}, 2}, [4] = {{36}, 1}};

static ev_str bitcode[2] = {EV_STR_EMPTY, EV_STR_EMPTY};

static ir_source source_of(const launch_plan *plan, const ir_genome *genome) {
    static const char *const arguments[] = {"x", "w", "y", "m", "n"};
    bool wide = plan == &product;
    ev_str *code = &bitcode[wide];
    ir_source source = {.path = "tests/ir/structure/kernels.cu",
                        .entry = launch_plan_entry(plan),
                        .include = "kernels/include",
                        .sm = 90,
                        .block = {wide ? 8 : 32, wide ? 4 : 1, 1},
                        .genome = genome,
                        .plan = plan,
                        .arguments = arguments,
                        .timed = timed,
                        .argument_count = 5};
    if (code->length == 0) /* compiled once a kernel */
        OK(ir_compile(&source, code, &err));
    source.bitcode = ev_str_text(code);
    source.bitcode_bytes = code->length;
    return source;
}

static ir_genome *genome_of(json_t *edits) {
    return genome_from(json_pack("{s:s,s:o}", "start", "textbook", "edits", edits));
}

static void check_applies(const launch_plan *plan, const ir_genome *child) {
    ir_base *base = NULL;
    ir_source source = source_of(plan, child);
    OK(ir_base_load(&source, &base, &err));
    ir_base_free(base);
}

static void test_each_drawn_edit_applies(void **state) {
    (void)state;
    ir_genome *parent = genome_of(json_array());
    ir_source source = source_of(&product, parent);
    unsigned made = 0;
    for (int kind = IR_EDIT_LOCAL_COUNT; kind < IR_EDIT_COUNT; kind++) {
        for (uint32_t seed = 0; seed < 3; seed++) {
            ev_pcg one = ev_pcg_child(7, 0, 0, seed), same = ev_pcg_child(7, 0, 0, seed);
            ir_genome *child = NULL, *again = NULL;
            ev_status status =
                ir_structure_draw(&source, (ir_edit_kind)kind, NULL, &one, &child, &err);
            ev_status other =
                ir_structure_draw(&source, (ir_edit_kind)kind, NULL, &same, &again, &err);
            assert_int_equal(status, other);
            if (status != EV_OK) {
                assert_int_equal(status, EV_BAD);
                continue;
            }
            made++;
            ev_sha256 a = ir_genome_sha256(child), b = ir_genome_sha256(again);
            assert_true(ev_sha256_equal(&a, &b));
            assert_int_equal(ir_genome_prefix_count(child), 1);
            assert_int_equal(ir_genome_edit_kind(child, 0), kind);
            check_applies(&product, child);
            ir_genome_free(child);
            ir_genome_free(again);
        }
    }
    assert_true(made >= 9);
    ir_genome_free(parent);
}

/* The values and divisors of the timed cases alone, and nothing without them. */
static void test_specialise_knows_the_timed_cases(void **state) {
    (void)state;
    ir_genome *parent = genome_of(json_array()), *child = NULL;
    ir_source source = source_of(&product, parent);
    unsigned equal = 0, multiples = 0;
    for (uint32_t seed = 0; seed < 16; seed++) {
        ev_pcg rng = ev_pcg_child(9, 0, 0, seed);
        OK(ir_structure_draw(&source, IR_EDIT_SPECIALISE, NULL, &rng, &child, &err));
        json_t *json = ir_genome_to_json(child);
        const json_t *edit = json_array_get(json_object_get(json, "edits"), 0);
        json_int_t option = json_integer_value(json_object_get(edit, "option"));
        assert_string_equal(json_string_value(json_object_get(edit, "anchor")), "a4");
        bool is_equal = strcmp(json_string_value(json_object_get(edit, "form")), "equal") == 0;
        assert_true(is_equal ? option == 36 : option == 2 || option == 4);
        equal += is_equal;
        multiples += !is_equal;
        json_decref(json);
        ir_genome_free(child);
    }
    assert_true(equal > 0 && multiples > 0);
    source.timed = NULL;
    ev_pcg rng = ev_pcg_child(9, 0, 0, 0);
    assert_int_equal(ir_structure_draw(&source, IR_EDIT_SPECIALISE, NULL, &rng, &child, &err),
                     EV_BAD);
    ir_genome_free(parent);
}

/* `exchanged` shuffles among the lanes of a warp, so that threads cannot change places. */
static void test_a_refused_kind_tells_the_reason(void **state) {
    (void)state;
    ir_genome *parent = genome_of(json_array()), *child = NULL;
    ir_source source = source_of(&exchanged, parent);
    ev_pcg rng = ev_pcg_child(1, 0, 0, 0);
    assert_int_equal(ir_structure_draw(&source, IR_EDIT_RELABEL_THREADS, NULL, &rng, &child, &err),
                     EV_BAD);
    assert_non_null(strstr(err.text, "relabel-threads applies at no place that was tried: "));
    assert_true(strlen(strstr(err.text, "tried: ")) > strlen("tried: "));
    assert_null(child);
    ir_genome_free(parent);
}

static void test_what_was_tried_is_not_drawn_again(void **state) {
    (void)state;
    ir_genome *parent = genome_of(json_array());
    ir_source source = source_of(&product, parent);
    uint64_t spent[64];
    ir_hints hints = {.spent = spent};
    for (;;) {
        ev_pcg rng = ev_pcg_child(3, 0, 0, (uint32_t)hints.spent_count);
        ir_genome *child = NULL;
        if (ir_structure_draw(&source, IR_EDIT_RELABEL_BLOCKS, &hints, &rng, &child, &err) != EV_OK)
            break;
        uint64_t mark = ir_genome_edit_mark(child, 0);
        for (size_t i = 0; i < hints.spent_count; i++)
            assert_true(spent[i] != mark);
        spent[hints.spent_count++] = mark;
        ir_genome_free(child);
    }
    assert_int_equal(hints.spent_count, 4); /* its options in ir/structure.def */
    ir_genome_free(parent);
}

/* ---- what is kept between draws ---- */

/* Draws with and without notes of places; both must give the same edit, or the same reason. */
static void check_noted(const launch_plan *plan, const ir_genome *parent, ir_places *places,
                        ir_edit_kind kind, uint32_t seed) {
    ir_source plain = source_of(plan, parent), noted = plain;
    noted.places = places;
    ev_pcg one = ev_pcg_child(9, 0, 0, seed), same = one;
    ir_genome *a = NULL, *b = NULL;
    ev_error why = {0}, other = {0};
    ev_status status = ir_structure_draw(&plain, kind, NULL, &one, &a, &why);
    assert_int_equal(ir_structure_draw(&noted, kind, NULL, &same, &b, &other), status);
    assert_string_equal(why.text, other.text);
    if (status == EV_OK) {
        ev_sha256 x = ir_genome_sha256(a), y = ir_genome_sha256(b);
        assert_true(ev_sha256_equal(&x, &y));
    }
    ir_genome_free(a);
    ir_genome_free(b);
}

static void test_notes_of_places_change_no_draw(void **state) {
    (void)state;
    static const ir_edit_kind kinds[] = {IR_EDIT_STAGE, IR_EDIT_RELABEL_THREADS,
                                         IR_EDIT_SPLIT_LANES};
    const launch_plan *plans[] = {&product, &exchanged};
    for (size_t p = 0; p < 2; p++) {
        ir_genome *parent = genome_of(json_array());
        ir_places *places = ir_places_new();
        assert_non_null(places);
        for (uint32_t seed = 0; seed < 4; seed++) {
            for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
                check_noted(plans[p], parent, places, kinds[k], seed);
        }
        ir_places_free(places);
        ir_genome_free(parent);
    }
}

/* A store for one genome: what each number of edits left; the last one is the optimised base. */
enum { KEPT = 3 };

typedef struct kept {
    ev_str text[KEPT];
    uint32_t block[KEPT][3];
    unsigned found;
} kept;

static size_t place_of(size_t edits) {
    return edits == IR_OPTIMISED ? KEPT - 1 : edits;
}

static bool find_kept(void *context, const ir_genome *genome, size_t edits, ir_early *out) {
    kept *k = context;
    size_t at = place_of(edits);
    (void)genome;
    if (k->text[at].length == 0)
        return false;
    *out = (ir_early){.bitcode = ev_str_text(&k->text[at]), .bytes = k->text[at].length};
    memcpy(out->block, k->block[at], sizeof out->block);
    k->found++;
    return true;
}

static ev_status keep(void *context, const ir_genome *genome, size_t edits, const ir_early *early,
                      ev_error *error) {
    kept *k = context;
    size_t at = place_of(edits);
    (void)genome;
    assert_int_equal(k->text[at].length, 0); /* made once */
    ev_str_append_n(&k->text[at], early->bitcode, early->bytes);
    memcpy(k->block[at], early->block, sizeof early->block);
    return ev_str_status(&k->text[at], error);
}

static ev_sha256 base_of(const ir_source *source) {
    ir_base *base = NULL;
    OK(ir_base_load(source, &base, &err));
    ev_sha256 sha = ir_base_sha256(base);
    ir_base_free(base);
    return sha;
}

/* Loads the base with a store that is empty, has the early IR, or has all. */
static void test_a_base_is_the_same_from_a_store(void **state) {
    (void)state;
    ir_genome *genome = genome_of(json_pack("[{s:s,s:s,s:i,s:s}]", "kind", "coarsen-threads",
                                            "anchor", "x", "option", 2, "form", "strided"));
    kept k = {.found = 0};
    const ir_early_store store = {.context = &k, .find = find_kept, .keep = keep};
    ir_source plain = source_of(&product, genome), stored = plain;
    stored.early = &store;
    ev_sha256 want = base_of(&plain), made = base_of(&stored), all = base_of(&stored);
    assert_int_equal(k.found, 1);
    assert_int_equal(k.block[1][0], 4); /* the block as the edit left it */
    ev_str_clear(&k.text[KEPT - 1]);
    ev_sha256 finished = base_of(&stored);
    assert_int_equal(k.found, 2);
    assert_true(ev_sha256_equal(&want, &made) && ev_sha256_equal(&want, &all) &&
                ev_sha256_equal(&want, &finished));
    for (size_t i = 0; i < KEPT; i++)
        ev_str_free(&k.text[i]);
    ir_genome_free(genome);
}

static void test_a_child_keeps_what_holds_for_any_base(void **state) {
    (void)state;
    ir_genome *parent =
        genome_of(json_pack("[{s:s,s:i},{s:s,s:s},{s:s,s:i},{s:s,s:i}]", "kind", "relabel-blocks",
                            "option", 2, "kind", "delete", "at", "i3", "kind", "max-threads",
                            "option", 32, "kind", "max-registers", "option", 64));
    ir_source source = source_of(&product, parent);
    ev_pcg rng = ev_pcg_child(5, 0, 0, 0);
    ir_genome *child = NULL;
    OK(ir_structure_draw(&source, IR_EDIT_COARSEN, NULL, &rng, &child, &err));
    assert_int_equal(ir_genome_edit_count(child), 3);
    assert_int_equal(ir_genome_edit_kind(child, 0), IR_EDIT_RELABEL_BLOCKS);
    assert_int_equal(ir_genome_edit_kind(child, 1), IR_EDIT_COARSEN);
    assert_int_equal(ir_genome_edit_kind(child, 2), IR_EDIT_MAX_REGISTERS);
    assert_true(ir_genome_is_skeleton(child) && !ir_genome_is_skeleton(parent));
    ir_genome_free(child);
    ir_genome_free(parent);
}

static void test_sites_are_counted(void **state) {
    (void)state;
    ir_genome *parent = genome_of(json_array());
    ir_source source = source_of(&product, parent);
    size_t sites[IR_EDIT_COUNT] = {[IR_EDIT_DELETE] = 12};
    OK(ir_structure_sites(&source, sites, &err));
    assert_int_equal(sites[IR_EDIT_DELETE], 12);
    assert_int_equal(sites[IR_EDIT_COARSEN], 2 * 20); /* x and y, 5 options, 4 forms */
    assert_int_equal(sites[IR_EDIT_SPLIT_LANES], 5);  /* one loop */
    ir_genome_free(parent);
}

/* A divisor that has no name in the plan is no place, as the launch could not be written. */
static void test_a_divisor_has_a_name(void **state) {
    (void)state;
    static const char *const unnamed[] = {"x", "w", "y", "m", ""};
    ir_genome *parent = genome_of(json_array());
    ir_source source = source_of(&taps, parent);
    size_t sites[IR_EDIT_COUNT] = {0};
    OK(ir_structure_sites(&source, sites, &err));
    assert_int_equal(sites[IR_EDIT_DELINEARIZE], 5); /* one divisor, 5 options */
    source.arguments = unnamed;
    OK(ir_structure_sites(&source, sites, &err));
    assert_int_equal(sites[IR_EDIT_DELINEARIZE], 0);
    ir_genome_free(parent);
}

/* A divisor may be what the launch plan computes from arguments, too. */
static void test_a_divisor_is_computed(void **state) {
    (void)state;
    ir_genome *parent = genome_of(json_array()), *child = NULL;
    ir_source source = source_of(&halves, parent);
    size_t sites[IR_EDIT_COUNT] = {0};
    ev_pcg rng = ev_pcg_child(1, 0, 0, 0);
    OK(ir_structure_sites(&source, sites, &err));
    assert_int_equal(sites[IR_EDIT_DELINEARIZE], 5);
    for (int i = 0; i < 10 && !child; i++) /* a draw may take an option of too many threads */
        (void)!ir_structure_draw(&source, IR_EDIT_DELINEARIZE, NULL, &rng, &child, &err);
    assert_non_null(child);
    assert_string_equal(ir_genome_edit(child, 0)->anchor.path, "(n + 1) / 2");
    ir_genome_free(child);
    ir_genome_free(parent);
}

static void test_a_divisor_is_an_expression(void **state) {
    (void)state;
    static const char *const anchors[] = {"x by ", "x by n +", "x by (n + 1", "x by n by m"};
    for (size_t i = 0; i < sizeof anchors / sizeof anchors[0]; i++) {
        ir_genome *genome = NULL;
        json_t *json = json_pack("{s:s,s:[{s:s,s:s,s:i}]}", "start", "textbook", "edits", "kind",
                                 "delinearize", "anchor", anchors[i], "option", 8);
        assert_non_null(json);
        assert_int_equal(ir_genome_from_json(json, &genome, &err), EV_BAD);
        json_decref(json);
    }
}

/* ---- genomes ---- */

static ir_genome *coarsened(void) {
    return genome_of(json_pack("[{s:s,s:s,s:i,s:s},{s:s,s:i},{s:s,s:s},{s:s,s:i}]", "kind",
                               "coarsen", "anchor", "y", "option", 2, "form", "strided", "kind",
                               "relabel-blocks", "option", 4, "kind", "delete", "at", "i3", "kind",
                               "max-registers", "option", 64));
}

static void test_without_structure_local_edits_go(void **state) {
    (void)state;
    ir_genome *genome = coarsened();
    ir_genome *rest = ir_genome_without(genome, 0, 1), *same = ir_genome_without(genome, 3, 4);
    assert_int_equal(ir_genome_edit_count(rest), 2); /* relabel-blocks and max-registers */
    assert_int_equal(ir_genome_edit_kind(rest, 0), IR_EDIT_RELABEL_BLOCKS);
    assert_int_equal(ir_genome_edit_kind(rest, 1), IR_EDIT_MAX_REGISTERS);
    assert_int_equal(ir_genome_edit_count(same), 3);
    ir_genome_free(rest);
    ir_genome_free(same);
    ir_genome *alone = ir_genome_part_on_base(genome, 2, 3);
    assert_int_equal(ir_genome_edit_count(alone), 3);
    assert_true(ir_genome_same_base(alone, genome));
    assert_int_equal(ir_genome_edit_kind(alone, 2), IR_EDIT_DELETE);
    ir_genome_free(alone);
    ir_genome_free(genome);
}

static void test_retune_changes_one_edit_of_the_prefix(void **state) {
    (void)state;
    ir_genome *genome = coarsened();
    for (uint32_t seed = 0; seed < 32; seed++) {
        ev_pcg rng = ev_pcg_child(seed, 0, 0, 0);
        ir_genome *child = ir_genome_retune(genome, &rng);
        assert_non_null(child);
        assert_int_equal(ir_genome_prefix_count(child), 2);
        assert_int_equal(ir_genome_edit_count(child), 3);
        size_t changed = 0;
        for (size_t i = 0; i < 2; i++) {
            ev_sha256 key = ir_genome_edit_key(genome, i);
            assert_int_equal(ir_genome_edit_kind(child, i), ir_genome_edit_kind(genome, i));
            changed += !ir_genome_holds(child, &key);
        }
        assert_int_equal(changed, 1);
        ir_genome_free(child);
    }
    ir_genome_free(genome);
}

/* The neighbours of a genome are one step away in one edit, and each comes once. The form `kept` is
 * of kernels whose grid cannot be computed, so no other form has such a neighbour; what an argument
 * is a multiple of is no size. */
static void test_neighbours_are_one_step_away(void **state) {
    (void)state;
    ir_genome *genome = genome_from(json_pack(
        "{s:s,s:[{s:s,s:s,s:i,s:s},{s:s,s:s,s:i,s:s},{s:s,s:s,s:i},{s:s,s:i}]}", "start", "s",
        "edits", "kind", "coarsen", "anchor", "y", "option", 2, "form", "far", "kind", "specialise",
        "anchor", "a2", "option", 4, "form", "multiple", "kind", "unroll-turns", "anchor", "loop 0",
        "option", 4, "kind", "relabel-threads", "option", 16));
    static const char *const steps[] = {"coarsen 4 far",     "unroll-turns 8 ",
                                        "unroll-turns 2 ",   "relabel-threads 8 ",
                                        "coarsen 2 strided", "coarsen 2 neighbours"};
    size_t at = 0, count = 0;
    for (ir_genome *next; (next = ir_genome_neighbour(genome, &at)) != NULL; count++) {
        assert_true(count < sizeof steps / sizeof steps[0]);
        char text[64] = "";
        size_t others = 0;
        json_t *json = ir_genome_to_json(next), *edit = NULL;
        for (size_t i = 0; i < ir_genome_edit_count(next); i++) {
            ev_sha256 key = ir_genome_edit_key(next, i);
            if (ir_genome_holds(genome, &key))
                continue;
            others++;
            edit = json_array_get(json_object_get(json, "edits"), i);
            const char *form = json_string_value(json_object_get(edit, "form"));
            (void)snprintf(
                text, sizeof text, "%s %d %s", json_string_value(json_object_get(edit, "kind")),
                (int)json_integer_value(json_object_get(edit, "option")), form ? form : "");
        }
        assert_int_equal(others, 1);
        assert_int_equal(ir_genome_edit_count(next), 4);
        assert_string_equal(text, steps[count]);
        json_decref(json);
        ir_genome_free(next);
    }
    assert_int_equal(count, sizeof steps / sizeof steps[0]);
    ir_genome_free(genome);
}

/* Text with ' for ". */
static ir_genome *genome_of_text(const char *edits) {
    char copy[512];
    (void)snprintf(copy, sizeof copy, "%s", edits);
    for (char *c = copy; *c != '\0'; c++)
        *c = *c == '\'' ? '"' : *c;
    return genome_from(json_pack("{s:s,s:o}", "start", "s", "edits", json_loads(copy, 0, NULL)));
}

/* The kinds, anchors and options of a genome's edits. */
static void list_edits(const ir_genome *genome, char text[256]) {
    json_t *json = ir_genome_to_json(genome), *edit = NULL;
    size_t i = 0, length = 0;
    text[0] = '\0';
    json_array_foreach(json_object_get(json, "edits"), i, edit) {
        const char *anchor = json_string_value(json_object_get(edit, "anchor"));
        length += (size_t)snprintf(text + length, 256 - length, "%s%s %s %d", i > 0 ? ", " : "",
                                   json_string_value(json_object_get(edit, "kind")),
                                   anchor ? anchor : "-",
                                   (int)json_integer_value(json_object_get(edit, "option")));
    }
    json_decref(json);
}

#define TURNS "{'kind':'unroll-loop','anchor':'loop 0.0','option':1}"
#define Y2 "{'kind':'coarsen','anchor':'y','option':2,'form':'far'}"
#define X4 "{'kind':'coarsen','anchor':'x','option':4,'form':'far'}"
#define STAGE "{'kind':'stage','anchor':'loop 0','option':8}"
#define AHEAD "{'kind':'pipeline-loads','anchor':'loop 0','option':1}"
#define OUT "{'kind':'unroll-loop','anchor':'loop 0','option':1,'form':'members'}"
#define INTERIOR "{'kind':'unroll-loop','anchor':'loop 0','option':1,'form':'interior'}"
#define PEELED "{'kind':'peel','option':1}"
#define LIMIT "{'kind':'max-registers','option':96}"

static ev_status mend(const char *child, const char *parent, char text[256]) {
    ir_genome *own = genome_of_text(child), *mended = NULL;
    const ir_genome *from = genome_of_text(parent);
    ir_source source = source_of(&product, own);
    ev_status status = ir_structure_mend(&source, &from, 1, &mended, &err);
    if (status == EV_OK)
        list_edits(mended, text);
    ir_genome_free(mended);
    ir_genome_free(from);
    ir_genome_free(own);
    return status;
}

/* A child without the edit that made a loop loses the edit that unrolled that loop, unless no
 * parent had it. */
static void test_what_lost_its_place_is_left_out(void **state) {
    (void)state;
    char text[256];
    OK(mend("[" STAGE "," TURNS "," LIMIT "]", "[" STAGE "," TURNS "]", text));
    assert_string_equal(text, "stage loop 0 8, unroll-loop loop 0.0 1, max-registers - 96");
    OK(mend("[" Y2 "," TURNS "," AHEAD "," LIMIT "]", "[" STAGE "," TURNS "," AHEAD "]", text));
    assert_string_equal(text, "coarsen y 2, pipeline-loads loop 0 1, max-registers - 96");
    assert_int_equal(mend("[" Y2 "," TURNS "]", "[" Y2 "]", text), EV_BAD);
    assert_non_null(strstr(err.text, "edit 1 (unroll-loop)"));
}

/* Edits out of the usual order come into it first. */
static void test_the_first_neighbour_is_in_order(void **state) {
    (void)state;
    char text[256];
    size_t at = 0;
    ir_genome *genome = genome_of_text("[" STAGE "," Y2 "," AHEAD "," LIMIT "]");
    ir_genome *next = ir_genome_neighbour(genome, &at);
    list_edits(next, text);
    assert_string_equal(text,
                        "coarsen y 2, stage loop 0 8, pipeline-loads loop 0 1, max-registers - 96");
    ir_genome_free(next);
    next = ir_genome_neighbour(genome, &at);
    list_edits(next, text);
    assert_string_equal(
        text, "stage loop 0 16, coarsen y 2, pipeline-loads loop 0 1, max-registers - 96");
    ir_genome_free(next);
    ir_genome_free(genome);
}

/* An edit of another skeleton comes to its usual place, and what finishes is one's or the other's.
 */
static void test_a_skeleton_is_extended_by_another(void **state) {
    (void)state;
    static const char *const expected[] = {
        "stage loop 0 8, coarsen x 4, coarsen y 2, pipeline-loads loop 0 1, max-registers - 96",
        "stage loop 0 8, coarsen x 4, coarsen y 2, unroll-loop loop 0 1"};
    char text[256];
    ir_genome *genome = genome_of_text("[" Y2 "," AHEAD "," LIMIT "]");
    ir_genome *staged = genome_of_text("[" STAGE "," X4 "," AHEAD "," LIMIT "]");
    ir_genome *by = genome_of_text("[" OUT "," Y2 "]");
    assert_int_equal(ir_genome_first_opening(by), 1);
    assert_int_equal(ir_genome_first_opening(staged), 0);
    assert_null(ir_genome_extend(genome, by, 1, false)); /* the place is open already */
    for (int finish_as_by = 0; finish_as_by < 2; finish_as_by++) {
        ir_genome *child = ir_genome_extend(staged, by, 1, finish_as_by);
        list_edits(child, text);
        assert_string_equal(text, expected[finish_as_by]);
        ir_genome_free(child);
    }
    ir_genome_free(by);
    by = genome_of_text("[" OUT "]");
    assert_true(ir_genome_first_opening(by) == SIZE_MAX);
    ir_genome_free(by);
    ir_genome_free(staged);
    ir_genome_free(genome);
}

/* A copy for interior blocks opens, and others stand on it; it opens in no other form. */
static void test_copies_for_interior_blocks_open(void **state) {
    (void)state;
    static const struct {
        const char *edits;
        size_t opening, footing;
    } rows[] = {{"[" OUT "]", 0, 0},
                {"[" INTERIOR "]", 1, 1},
                {"[" PEELED "]", 1, 1},
                {"[" Y2 "," PEELED "," OUT "]", 2, 1},
                {"[" OUT "," INTERIOR "]", 1, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ir_genome *genome = genome_of_text(rows[i].edits);
        assert_int_equal(ir_genome_opening_count(genome), rows[i].opening);
        assert_int_equal(ir_genome_footing_count(genome), rows[i].footing);
        ir_genome_free(genome);
    }
    assert_true(ir_edit_opens(IR_EDIT_UNROLL_LOOP) && ir_edit_opens(IR_EDIT_PEEL));
    assert_false(ir_edit_opens(IR_EDIT_UNROLL_TURNS));
    assert_int_equal(ir_edit_forms(IR_EDIT_UNROLL_LOOP), 3);
}

/* The edits that a genome lacks come to their usual places, behind those of their phase; what it
 * has stays once. */
static void test_edits_are_joined_at_their_places(void **state) {
    (void)state;
    char text[256];
    ir_genome *genome = genome_of_text("[" Y2 "," AHEAD "," LIMIT "]");
    ir_genome *edits = genome_of_text("[" STAGE "," AHEAD "," X4 "]");
    ir_genome *larger = genome_of_text("[{'kind':'coarsen','anchor':'y','option':4}]");
    static const char *const expected[] = {
        "coarsen y 2, coarsen x 4, stage loop 0 8, pipeline-loads loop 0 1, max-registers - 96",
        "coarsen y 2, pipeline-loads loop 0 1, stage loop 0 8, coarsen x 4, max-registers - 96"};
    for (int at_end = 0; at_end < 2; at_end++) {
        ir_genome *joined = ir_genome_join(genome, edits, at_end);
        list_edits(joined, text);
        assert_string_equal(text, expected[at_end]);
        assert_null(ir_genome_join(joined, edits, at_end)); /* it lacks none */
        ir_genome_free(joined);
        joined = ir_genome_join(genome, larger, at_end); /* one that opens takes another's place */
        list_edits(joined, text);
        assert_string_equal(text, at_end
                                      ? "pipeline-loads loop 0 1, coarsen y 4, max-registers - 96"
                                      : "coarsen y 4, pipeline-loads loop 0 1, max-registers - 96");
        ir_genome_free(joined);
    }
    ir_genome_free(larger);
    ir_genome_free(edits);
    ir_genome_free(genome);
}

#define Y3 "{'kind':'coarsen','anchor':'y','option':3,'form':'far'}"

/* Two joined edits that open one place both stand, in place of what opened the place before. An
 * edit that the genome has already clears no place. */
static void test_two_joined_edits_of_one_place_both_stand(void **state) {
    (void)state;
    static const struct {
        const char *genome, *edits, *expected[2]; /* at their usual places, at the end */
    } rows[] = {
        {"[{'kind':'coarsen','anchor':'y','option':4}," STAGE "]",
         "[" Y2 "," Y3 "]",
         {"coarsen y 2, coarsen y 3, stage loop 0 8", "stage loop 0 8, coarsen y 2, coarsen y 3"}},
        {"[" Y2 "," Y3 "," STAGE "]",
         "[" Y2 "," AHEAD "]",
         {"coarsen y 2, coarsen y 3, stage loop 0 8, pipeline-loads loop 0 1",
          "coarsen y 2, coarsen y 3, stage loop 0 8, pipeline-loads loop 0 1"}},
        {"[" X4 "," Y2 "]", "[" X4 "," Y3 "]", {"coarsen x 4, coarsen y 3", NULL}}};
    char text[256];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ir_genome *genome = genome_of_text(rows[i].genome), *edits = genome_of_text(rows[i].edits);
        for (int at_end = 0; at_end < 2 && rows[i].expected[at_end]; at_end++) {
            ir_genome *joined = ir_genome_join(genome, edits, at_end);
            list_edits(joined, text);
            assert_string_equal(text, rows[i].expected[at_end]);
            ir_genome_free(joined);
        }
        ir_genome_free(edits);
        ir_genome_free(genome);
    }
}

/* Two edits at one place open one place, and reach as far as one with the product of options. */
static void test_the_extent_is_the_product_of_options(void **state) {
    (void)state;
    static const char *const texts[] = {
        "[{'kind':'coarsen','anchor':'y','option':4,'form':'far'}," STAGE "]",
        "[" Y2 "," STAGE ",{'kind':'coarsen','anchor':'y','option':2,'form':'strided'}," AHEAD "]",
        "[" Y2 "," STAGE "]", "[" Y2 "," X4 "]"};
    uint64_t extents[4];
    for (size_t i = 0; i < 4; i++) {
        ir_genome *genome = genome_of_text(texts[i]);
        extents[i] = ir_genome_extent(genome);
        assert_int_equal(ir_genome_opening_count(genome), 2);
        ir_genome_free(genome);
    }
    assert_true(extents[0] == extents[1]);
    assert_true(extents[0] != extents[2] && extents[2] != extents[3]);
}

/* What opens is the outline; options, order and what finishes are not. */
static void test_the_outline_is_what_opens(void **state) {
    (void)state;
    static const char *const texts[] = {
        "[{'kind':'coarsen','anchor':'y','option':2,'form':'far'},"
        "{'kind':'stage','anchor':'loop 0','option':4}]",
        "[{'kind':'stage','anchor':'loop 0','option':8},{'kind':'unroll-turns','anchor':'loop "
        "0','option':2},{'kind':'coarsen','anchor':'y','option':4,'form':'strided'},"
        "{'kind':'relabel-threads','option':16}]",
        "[{'kind':'coarsen','anchor':'x','option':2,'form':'far'},"
        "{'kind':'stage','anchor':'loop 0','option':4}]",
    };
    uint64_t outlines[3];
    for (size_t i = 0; i < 3; i++) {
        ir_genome *genome = genome_of_text(texts[i]);
        outlines[i] = ir_genome_outline(genome);
        assert_int_equal(ir_genome_opening_count(genome), 2);
        ir_genome_free(genome);
    }
    assert_true(outlines[0] == outlines[1] && outlines[0] != outlines[2]);
}

static void test_reorder_moves_one_edit_of_the_prefix(void **state) {
    (void)state;
    ir_genome *genome =
        genome_of(json_pack("[{s:s,s:i},{s:s,s:i},{s:s,s:i},{s:s,s:s}]", "kind", "relabel-blocks",
                            "option", 2, "kind", "relabel-blocks", "option", 4, "kind",
                            "relabel-blocks", "option", 8, "kind", "delete", "at", "i3"));
    for (uint32_t seed = 0; seed < 32; seed++) {
        ev_pcg rng = ev_pcg_child(seed, 0, 0, 0);
        ir_genome *child = ir_genome_reorder(genome, &rng);
        size_t same = 0;
        assert_int_equal(ir_genome_edit_count(child), 3);
        for (size_t i = 0; i < 3; i++) {
            ev_sha256 key = ir_genome_edit_key(genome, i), other = ir_genome_edit_key(child, i);
            assert_true(ir_genome_holds(child, &key));
            same += ev_sha256_equal(&key, &other);
        }
        assert_true(same < 2);
        ir_genome_free(child);
    }
    ir_genome_free(genome);
}

/* Another value would be one that no case has. */
static void test_retune_takes_no_value_from_the_table(void **state) {
    (void)state;
    ir_genome *genome = genome_of(json_pack("[{s:s,s:s,s:i,s:s}]", "kind", "specialise", "anchor",
                                            "a4", "option", 36, "form", "equal"));
    for (uint32_t seed = 0; seed < 16; seed++) {
        ev_pcg rng = ev_pcg_child(seed, 0, 0, 0);
        ir_genome *child = ir_genome_retune(genome, &rng);
        assert_non_null(child);
        json_t *json = ir_genome_to_json(child);
        const json_t *edit = json_array_get(json_object_get(json, "edits"), 0);
        assert_string_equal(json_string_value(json_object_get(edit, "form")), "multiple");
        json_decref(json);
        ir_genome_free(child);
    }
    ir_genome_free(genome);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_drawn_edit_applies),
        cmocka_unit_test(test_specialise_knows_the_timed_cases),
        cmocka_unit_test(test_a_refused_kind_tells_the_reason),
        cmocka_unit_test(test_what_was_tried_is_not_drawn_again),
        cmocka_unit_test(test_a_child_keeps_what_holds_for_any_base),
        cmocka_unit_test(test_sites_are_counted),
        cmocka_unit_test(test_a_divisor_has_a_name),
        cmocka_unit_test(test_a_divisor_is_computed),
        cmocka_unit_test(test_a_divisor_is_an_expression),
        cmocka_unit_test(test_notes_of_places_change_no_draw),
        cmocka_unit_test(test_a_base_is_the_same_from_a_store),
        cmocka_unit_test(test_without_structure_local_edits_go),
        cmocka_unit_test(test_retune_takes_no_value_from_the_table),
        cmocka_unit_test(test_neighbours_are_one_step_away),
        cmocka_unit_test(test_what_lost_its_place_is_left_out),
        cmocka_unit_test(test_the_first_neighbour_is_in_order),
        cmocka_unit_test(test_a_skeleton_is_extended_by_another),
        cmocka_unit_test(test_copies_for_interior_blocks_open),
        cmocka_unit_test(test_edits_are_joined_at_their_places),
        cmocka_unit_test(test_two_joined_edits_of_one_place_both_stand),
        cmocka_unit_test(test_the_extent_is_the_product_of_options),
        cmocka_unit_test(test_the_outline_is_what_opens),
        cmocka_unit_test(test_reorder_moves_one_edit_of_the_prefix),
        cmocka_unit_test(test_retune_changes_one_edit_of_the_prefix),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    ev_str_free(&bitcode[0]);
    ev_str_free(&bitcode[1]);
    return failed;
}
