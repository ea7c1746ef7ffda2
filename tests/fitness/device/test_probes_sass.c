/* The probes of the calibration as machine code: each step of a probe is the instructions that its
 * column `code` claims, in what ptxas makes, where there is one (EVOKE_PTXAS, PATH,
 * /usr/local/cuda/bin; else the test is skipped). An assembler that merges two steps, leaves out a
 * load or narrows it makes a figure that no GPU has.
 *
 * Counted is how much more the longer kernel of a probe has than the shorter one, as the figure is
 * made of the difference of their times. */
#include "fitness/device/calibrate/calibrate_impl.h"
#include "fitness/device/cuda/ptxas.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/ok.h"

#define SKIPPED 77
#define SHORT 16 /* steps */
#define LONG 48
#define OPCODES 512
#define WIDTHS 8
#define ANY WIDTHS
#define NOP 0x118

static ptxas assembler;
static ev_error err;

/* How many instructions a kernel has, by opcode and bits 73 to 75. */
typedef struct census {
    unsigned of[OPCODES][WIDTHS];
    unsigned all; /* without NOP */
} census;

/* ---- machine code ---- */

static void count_code(const uint8_t *code, size_t bytes, census *out) {
    for (size_t i = 0; i + 16 <= bytes; i += 16) {
        uint64_t word[2];
        memcpy(word, code + i, sizeof word);
        unsigned opcode = word[0] & (OPCODES - 1), width = word[1] >> 9 & (WIDTHS - 1);
        out->of[opcode][width]++;
        out->all += opcode != NOP;
    }
}

static void count_cubin(const ev_str *cubin, census *out) {
    const char *bytes = ev_str_text(cubin);
    Elf64_Ehdr head;
    bool found = false;
    assert_true(cubin->length > sizeof head && memcmp(bytes, ELFMAG, SELFMAG) == 0);
    memcpy(&head, bytes, sizeof head);
    Elf64_Shdr *sections = calloc(head.e_shnum, sizeof *sections);
    assert_non_null(sections);
    assert_true(head.e_shoff + (size_t)head.e_shnum * sizeof *sections <= cubin->length);
    memcpy(sections, bytes + head.e_shoff, (size_t)head.e_shnum * sizeof *sections);
    const char *names = bytes + sections[head.e_shstrndx].sh_offset;
    for (unsigned i = 0; i < head.e_shnum; i++) {
        if (strcmp(names + sections[i].sh_name, ".text.probe") != 0)
            continue;
        assert_true(sections[i].sh_offset + sections[i].sh_size <= cubin->length);
        count_code((const uint8_t *)bytes + sections[i].sh_offset, sections[i].sh_size, out);
        found = true;
    }
    free(sections);
    assert_true(found);
}

/* False: this ptxas has not the target. */
static bool count_probe(const probe *p, int length, int sm, census *out) {
    ev_str ptx = EV_STR_EMPTY, cubin = EV_STR_EMPTY, log = EV_STR_EMPTY;
    bool deadly = false;
    memset(out, 0, sizeof *out);
    OK(calibrate_kernel(p, length, &ptx, &err));
    ev_status status = ptxas_run(&assembler, ev_str_text(&ptx), sm, &cubin, &log, &deadly, &err);
    if (status == EV_OK)
        count_cubin(&cubin, out);
    else if (strstr(err.text, "not defined for option 'gpu-name'") == NULL)
        fail_msg("%s, sm_%d: %s", p->name, sm, err.text);
    ev_str_free(&ptx);
    ev_str_free(&cubin);
    ev_str_free(&log);
    return status == EV_OK;
}

/* ---- claims ---- */

typedef struct sass_row {
    const char *name;
    unsigned opcode, width;
} sass_row;

static const sass_row ROWS[] = {
#define SASS(name, opcode, width) {name, opcode, width},
#include "tests/fitness/device/sass.def"
};

static unsigned count_named(const census *c, const char *name) {
    unsigned count = 0;
    bool known = false;
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        const sass_row *r = &ROWS[i];
        if (strcmp(r->name, name) != 0)
            continue;
        known = true;
        for (unsigned w = 0; w < WIDTHS; w++)
            count += r->width == ANY || r->width == w ? c->of[r->opcode][w] : 0;
    }
    if (!known)
        fail_msg("no row %s in sass.def", name);
    return count;
}

/* Whether the step is what its column says; a claim that does not hold is printed. */
static bool holds(const probe *p, int sm, const census *few, const census *many) {
    unsigned steps = (LONG - SHORT) * p->shape->chains, claimed = 0, others = 0;
    bool fine = true;
    const char *at = p->code;
    while (*at != '\0') {
        char name[16] = "";
        unsigned each = 0;
        int read = 0;
        if (sscanf(at, " +%u%n", &others, &read) == 1) {
            at += read;
            continue;
        }
        if (sscanf(at, " %u %15s%n", &each, name, &read) != 2)
            fail_msg("%s: column code: %s", p->name, at);
        at += read;
        unsigned got = count_named(many, name) - count_named(few, name);
        claimed += each * steps;
        if (got == each * steps)
            continue;
        print_error("%s, sm_%d: %u steps have %u %s, and the probe claims %u\n", p->name, sm, steps,
                    got, name, each * steps);
        fine = false;
    }
    unsigned beside = many->all - few->all - claimed;
    if (fine && beside > others * steps + claimed / 8) {
        print_error("%s, sm_%d: %u steps have %u other instructions, and the probe claims at most "
                    "%u a step\n",
                    p->name, sm, steps, beside, others);
        fine = false;
    }
    return fine;
}

static void are_what_they_claim(void **state) {
    (void)state;
    static const int targets[] = {80, 89, 90, 100, 120};
    census *few = malloc(sizeof *few), *many = malloc(sizeof *many);
    unsigned wrong = 0, looked = 0;
    assert_true(few != NULL && many != NULL);
    for (size_t t = 0; t < sizeof targets / sizeof *targets; t++) {
        for (size_t i = 0; i < PROBE_COUNT; i++) {
            const probe *p = &calibrate_probes[i];
            if (p->step[0] == '\0' || !count_probe(p, SHORT, targets[t], few) ||
                !count_probe(p, LONG, targets[t], many))
                continue;
            looked++;
            wrong += !holds(p, targets[t], few, many);
        }
    }
    free(few);
    free(many);
    assert_true(looked > 30);
    assert_int_equal(wrong, 0);
}

/* What ptxas 13.0 made of former probes: four loads to one register became one, of a load of 16
 * bytes 4 remained. */
static void notices(void **state) {
    (void)state;
    static const struct {
        const char *values, *step, *code;
    } former[] = {
        {"it",
         "ld.volatile.shared.u16 %x$, [%t$];\nld.volatile.shared.u16 %x$, [%t$+2];\n"
         "ld.volatile.shared.u16 %x$, [%t$+4];\nadd.s32 %t$, %t$, %x$;",
         "3 LDS.16 +1"},
        {"m",
         "ld.global.cg.v2.u64 {%u$, %k$}, [%m$];\nadd.s64 %m$, %m$, %stride;\n"
         "cvt.u32.u64 %tmp, %u$;\nadd.s32 %sum, %sum, %tmp;",
         "1 LDG.128 +4"},
    };
    census *few = malloc(sizeof *few), *many = malloc(sizeof *many);
    assert_true(few != NULL && many != NULL);
    for (size_t i = 0; i < sizeof former / sizeof *former; i++) {
        probe p = calibrate_probes[PROBE_LSU];
        p.values = former[i].values;
        p.step = former[i].step;
        p.code = former[i].code;
        if (count_probe(&p, SHORT, 90, few) && count_probe(&p, LONG, 90, many))
            assert_false(holds(&p, 90, few, many));
    }
    free(few);
    free(many);
}

int main(void) {
    ptxas_find(&assembler);
    if (assembler.path[0] == '\0' || access(assembler.path, X_OK) != 0) {
        (void)puts("skipped: there is no ptxas (EVOKE_PTXAS, PATH, /usr/local/cuda/bin)");
        return SKIPPED;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(are_what_they_claim),
                                       cmocka_unit_test(notices)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
