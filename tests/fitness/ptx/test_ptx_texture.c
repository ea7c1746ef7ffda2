/* Spellings of textures and surfaces that are refused when a module is loaded, as the assembler of
 * CUDA 13.0 does, and what the machine does not have. */
#include "tests/fitness/vm/texture_rig.h"

/* ---- what is refused when a module is loaded */

typedef struct refusal {
    const char *line, *words;
} refusal;

static const refusal refusals[] = {
    {"tex.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%t];", "expected [texture or surface"},
    {"tex.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%t, 4];", "coordinates in { }"},
    {"tex.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%t+8, {%c0}];", "alone"},
    {"tex.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%i, {%c0}];",
     "of 32 bits; expected a register of 64"},
    {"tex.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%t, {%c0, %c1}];",
     "found 2 coordinates; expected 1"},
    {"tex.3d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%t, {%x0, %x1, %x2}];", "expected 4"},
    {"tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%t, {%d0, %d1}];", "expected a register of 32 bits"},
    {"tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%t, %d0, {%x0, %x1}];", "expected [texture or"},
    {"tex.2d.v2.f32.f32 {%f0, %f1}, [%t, {%x0, %x1}];", "expected .f16x2"},
    {"tex.2d.v4.b32.f32 {%f0, %f1, %f2, %f3}, [%t, {%x0, %x1}];", "found '.b32'"},
    {"tex.cube.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%t, {%c0, %c1, %c2, %c3}];",
     "expected coordinates"},
    {"tex.2dms.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%t, {%c0, %c1, %c2, %c3}];", "several samples"},
    {"tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%t, {%x0, %x1}], %x2;", "a depth to compare with"},
    {"tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%t, {%x0, %x1}], {1, 2}, %x2;",
     "a depth to compare"},
    {"tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%t, {%x0, %x1}], {1};", "expected 2 offsets"},
    {"tex.grad.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%t, {%x0, %x1}], {%x0}, {%x1};",
     "a gradient of 2 elements"},
    {"tex.grad.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%t, {%x0, %x1}], %x0, %x1;", "a gradient of 2"},
    {"tld4.r.1d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%t, {%x0}];", "expected .2d"},
    {"tld4.r.2d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%t, {%c0, %c1}];", "found '.s32'"},
    {"txq.force_unnormalized_coords.b32 %r0, [%t];", "texmode_independent"},
    {"txq.memory_layout.b32 %r0, [%t];", "expected it of suq"},
    {"txq.level.array_size.b32 %r0, [%t], 0;", "expected .width, .height or .depth"},
    {"suq.filter_mode.b32 %r0, [%t];", "expected it of txq"},
    {"suld.b.1d.b32 %r0, [%t, {%c0}];", "expected it to go on with .trap, .clamp, .zero"},
    {"suld.b.1d.u32.trap %r0, [%t, {%c0}];", "found '.u32'"},
    {"suld.b.1d.v4.b64.trap {%d0, %d1, %d2, %d3}, [%t, {%c0}];", "at most 16 bytes"},
    {"suld.b.2d.wb.b32.trap %r0, [%t, {%c0, %c1}];", "expected .ca, .cg, .cs or .cv"},
    {"suld.b.cube.b32.trap %r0, [%t, {%c0, %c1, %c2, %c3}];", "expected .1d"},
    {"suld.b.1d.b32.trap %r0, [%t, {%d0}];", "expected a register of 32 bits"},
    {"sust.b.1d.ca.b32.trap [%t, {%c0}], %r0;", "expected .wb, .cg, .cs or .wt"},
    {"sust.p.2d.b64.trap [%t, {%c0, %c1}], %d0;", "found '.b64'"},
    {"sured.p.add.2d.b32.trap [%t, {%c0, %c1}], %r0;", "a reduction by elements"},
    {"sured.b.add.a2d.u32.trap [%t, {%c0, %c1, %c2, %c3}], %r0;", "expected .1d, .2d or .3d"},
    {"sured.b.or.1d.b64.trap [%t, {%c0}], %d0;", "found '.b64'"},
};

static void expect_refused(const char *text, const char *words) {
    ev_error err = {0};
    vm_module *m = NULL;
    if (vm_module_load(text, strlen(text), "t.ptx", &m, &err) != EV_BAD || !strstr(err.text, words))
        fail_msg("%s\nexpected a message with \"%s\", got %s", text, words,
                 m ? "a module" : err.text);
}

static void test_refusals(void **state) {
    (void)state;
    char text[8192];
    for (size_t k = 0; k < sizeof refusals / sizeof *refusals; k++) {
        snprintf(text, sizeof text, kernel, head, refusals[k].line);
        expect_refused(text, refusals[k].words);
    }
    static const refusal declarations[] = {
        {".global .samplerref s;", "texmode_independent"},
        {".const .texref t;", "are .global"},
        {".global .texref t = {width = 3};", "what is bound"},
        {".global .surfref s;\n.global .u64 p = s;\n.global .u32 q = s;", "a number"},
    };
    for (size_t k = 0; k < sizeof declarations / sizeof *declarations; k++) {
        snprintf(text, sizeof text, "%s%s\n", head, declarations[k].line);
        expect_refused(text, declarations[k].words);
    }
    static const char independent[] = ".version 8.5\n.target sm_90, texmode_independent\n"
                                      ".address_size 64\n.global .texref t;\n";
    snprintf(text, sizeof text, "%s.global .samplerref s = {filter_mode = cubic};", independent);
    expect_refused(text, "nearest or linear");
    snprintf(text, sizeof text, kernel, independent,
             "tex.1d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%t, {%x0}];");
    expect_refused(text, "[texture, sampler, {coordinates}]");
    snprintf(text, sizeof text, kernel, independent,
             "tex.1d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%t, t, {%x0}];");
    expect_refused(text, "a .samplerref variable");
    snprintf(text, sizeof text, kernel, independent, "suld.b.1d.b32.trap %r0, [t, {%c0}];");
    expect_refused(text, "a .surfref variable");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
