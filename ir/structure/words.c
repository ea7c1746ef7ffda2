/* Words: the rules of structural edits in the table of edits. A base has its prefix applied
 * already, so replaying a structural edit on the numbered module changes nothing, and none is drawn
 * there. */
#include "ir/structure/structure_internal.h"
#include "ir/structure/sums_internal.h"

static void no_sites(const ir_work *work, ir_sites *sites) {
    (void)work;
    (void)sites;
}

static bool no_draw(ir_work *work, ir_site site, ev_pcg *rng, ir_edit *edit) {
    (void)work;
    (void)site;
    (void)rng;
    (void)edit;
    return false;
}

static ev_status is_applied(ir_work *work, const ir_edit *edit, ev_error *err) {
    (void)work;
    (void)edit;
    (void)err;
    return EV_OK;
}

static const char *const places[IR_FORM_COUNT] = {
    [IR_FORM_NONE] = "",
    [IR_FORM_STRIDED] = " a block apart",
    [IR_FORM_NEIGHBOURS] = " side by side",
    [IR_FORM_FAR] = " a grid apart",
    [IR_FORM_PADDED] = " padded",
    [IR_FORM_INTERIOR] = "",
    [IR_FORM_GUARDED] = "",
    [IR_FORM_MEMBERS] = "",
    [IR_FORM_BALANCED] = "",
    [IR_FORM_NESTED] =
        ", whose rows share the turns of a loop, and the threads of a row those of the loop inside",
    [IR_FORM_KEPT] = " a block apart, while the last blocks do nothing",
};

static void describe_coarsen(const ir_work *work, const ir_edit *edit, ev_str *out) {
    char axis[IR_ANCHOR_TEXT];
    (void)work;
    ir_anchor_print(&edit->anchor, axis);
    ev_str_printf(out, "gives a thread the work of %lld threads along %s,%s",
                  (long long)edit->option, axis, places[edit->form]);
}

static void describe_threads(const ir_work *work, const ir_edit *edit, ev_str *out) {
    char axis[IR_ANCHOR_TEXT];
    (void)work;
    ir_anchor_print(&edit->anchor, axis);
    ev_str_printf(out, "gives a thread the work of %lld threads of its block along %s,%s",
                  (long long)edit->option, axis,
                  edit->form == IR_FORM_STRIDED ? " a smaller block apart" : places[edit->form]);
}

static void describe_split(const ir_work *work, const ir_edit *edit, ev_str *out) {
    (void)work;
    ev_str_printf(out, "spreads the turns of loop %s over %lld lanes", edit->anchor.path,
                  (long long)edit->option);
}

static void describe_team(const ir_work *work, const ir_edit *edit, ev_str *out) {
    (void)work;
    if (edit->anchor.kind == IR_ANCHOR_LOOP)
        ev_str_printf(out, "spreads no loop around loop %s; ", edit->anchor.path);
    ev_str_printf(out, "gives the work of a thread to a team of %lld threads%s",
                  (long long)edit->option,
                  edit->form == IR_FORM_STRIDED ? " a row of threads apart" : places[edit->form]);
}

static void describe_turns(const ir_work *work, const ir_edit *edit, ev_str *out) {
    (void)work;
    ev_str_printf(out, "does %lld turns of loop %s at a time", (long long)edit->option,
                  edit->anchor.path);
}

static void describe_pipeline(const ir_work *work, const ir_edit *edit, ev_str *out) {
    (void)work;
    ev_str_printf(out, "loads one turn ahead in loop %s%s%s", edit->anchor.path,
                  edit->option == 2 ? ", at loaded addresses as well" : "",
                  edit->form == IR_FORM_GUARDED ? ", under conditions as well" : "");
}

const ir_rule ir_rule_PIPELINE_LOADS = {no_sites, no_draw, is_applied, describe_pipeline};
static void describe_relabel_threads(const ir_work *work, const ir_edit *edit, ev_str *out) {
    (void)work;
    ev_str_printf(out, "gives each warp a tile of threads %lld wide", (long long)edit->option);
}

static void describe_relabel_blocks(const ir_work *work, const ir_edit *edit, ev_str *out) {
    (void)work;
    ev_str_printf(out, "runs the blocks in groups of %lld rows", (long long)edit->option);
}

static void describe_jam_turns(const ir_work *work, const ir_edit *edit, ev_str *out) {
    (void)work;
    ev_str_printf(out, "runs %lld turns of loop %s side by side, through the loops inside it",
                  (long long)edit->option, edit->anchor.path);
}

static void describe_join_atomics(const ir_work *work, const ir_edit *edit, ev_str *out) {
    (void)work;
    ev_str_printf(out, "combines what the threads of a %s add to one address, and adds once",
                  edit->option == IR_WARP ? "warp" : "block");
}

static void describe_stage_atomics(const ir_work *work, const ir_edit *edit, ev_str *out) {
    char argument[IR_ANCHOR_TEXT];
    (void)work;
    ir_anchor_print(&edit->anchor, argument);
    ev_str_printf(out,
                  "adds to a copy of the first %lld elements of argument %s in shared memory, and "
                  "adds the copy once",
                  (long long)edit->option, argument);
}

static void describe_stage(const ir_work *work, const ir_edit *edit, ev_str *out) {
    char place[IR_ANCHOR_TEXT];
    (void)work;
    ir_anchor_print(&edit->anchor, place);
    ev_str_printf(out,
                  "loads what %s%s reads from global memory by tiles of %lld turns into%s "
                  "shared memory",
                  edit->anchor.kind == IR_ANCHOR_ARGUMENT ? "a loop of argument " : "", place,
                  (long long)edit->option, edit->form == IR_FORM_PADDED ? " padded" : "");
}

static void describe_sink(const ir_work *work, const ir_edit *edit, ev_str *out) {
    (void)work;
    ev_str_printf(out, "runs loop %s only where its results are used", edit->anchor.path);
}

static void describe_raise(const ir_work *work, const ir_edit *edit, ev_str *out) {
    (void)work;
    ev_str_printf(out, "runs loop %s in any case, and takes its results where ", edit->anchor.path);
    if (edit->option > 1)
        ev_str_printf(out, "its %lld conditions hold", (long long)edit->option);
    else
        ev_str_append(out, "its condition holds");
}

static void describe_peel(const ir_work *work, const ir_edit *edit, ev_str *out) {
    (void)work;
    ev_str_append(out, edit->form == IR_FORM_MEMBERS
                           ? "gives threads whose members all have work a copy of the kernel "
                             "without the tests of that"
                           : "gives blocks in the interior a copy of the kernel without tests of "
                             "coordinates");
}

static void describe_unroll(const ir_work *work, const ir_edit *edit, ev_str *out) {
    (void)work;
    const char *where = "";
    if (edit->form == IR_FORM_INTERIOR)
        where = " in a copy of the kernel without tests of coordinates";
    else if (edit->form == IR_FORM_MEMBERS)
        where = " in a copy of the kernel for threads whose members all have work";
    ev_str_printf(out, "writes out all turns of loop %s%s", edit->anchor.path, where);
}

const ir_rule ir_rule_UNROLL_LOOP = {no_sites, no_draw, is_applied, describe_unroll};
static void describe_group(const ir_work *work, const ir_edit *edit, ev_str *out) {
    (void)work;
    ev_str_printf(out, "sends out up to %lld loads before the first of their values is used",
                  (long long)edit->option);
}

const ir_rule ir_rule_GROUP_LOADS = {no_sites, no_draw, is_applied, describe_group};
const ir_rule ir_rule_PEEL = {no_sites, no_draw, is_applied, describe_peel};
static void describe_pad(const ir_work *work, const ir_edit *edit, ev_str *out) {
    (void)work;
    ev_str_printf(out, "makes the rows of shared array %u longer by %lld element%s",
                  edit->anchor.number, (long long)edit->option, edit->option == 1 ? "" : "s");
}

static void describe_swizzle(const ir_work *work, const ir_edit *edit, ev_str *out) {
    (void)work;
    ev_str_printf(out,
                  "exchanges the columns of shared array %u, %lld elements at a time, by the "
                  "row's number",
                  edit->anchor.number, (long long)edit->option);
}

const ir_rule ir_rule_PAD = {no_sites, no_draw, is_applied, describe_pad};
const ir_rule ir_rule_SWIZZLE = {no_sites, no_draw, is_applied, describe_swizzle};
static void describe_specialise(const ir_work *work, const ir_edit *edit, ev_str *out) {
    (void)work;
    ev_str_printf(out, "gives the kernel a copy for launches in which argument %u is %s%lld",
                  edit->anchor.number, edit->form == IR_FORM_MULTIPLE ? "a multiple of " : "",
                  (long long)edit->option);
}

static void describe_delinearize(const ir_work *work, const ir_edit *edit, ev_str *out) {
    (void)work;
    ev_str_printf(out,
                  "lets threads stand as rows of %s and %lld columns of a block, in place of an "
                  "index along %c",
                  edit->anchor.path, (long long)edit->option, "xyz"[edit->anchor.number]);
}

static void describe_resize(const ir_work *work, const ir_edit *edit, ev_str *out) {
    (void)work;
    ev_str_printf(
        out, "gives blocks %lld threads along %c%s", (long long)edit->option,
        "xyz"[edit->anchor.number],
        edit -> form == IR_FORM_BALANCED ? ", and as many in all as before, by another axis" : "");
}

const ir_rule ir_rule_DELINEARIZE = {no_sites, no_draw, is_applied, describe_delinearize};
const ir_rule ir_rule_SPECIALISE = {no_sites, no_draw, is_applied, describe_specialise};
const ir_rule ir_rule_SINK_LOOP = {no_sites, no_draw, is_applied, describe_sink};
const ir_rule ir_rule_JOIN_ATOMICS = {no_sites, no_draw, is_applied, describe_join_atomics};
const ir_rule ir_rule_STAGE_ATOMICS = {no_sites, no_draw, is_applied, describe_stage_atomics};
const ir_rule ir_rule_STAGE = {no_sites, no_draw, is_applied, describe_stage};
const ir_rule ir_rule_RELABEL_THREADS = {no_sites, no_draw, is_applied, describe_relabel_threads};
const ir_rule ir_rule_RELABEL_BLOCKS = {no_sites, no_draw, is_applied, describe_relabel_blocks};
const ir_rule ir_rule_SPLIT_THREADS = {no_sites, no_draw, is_applied, describe_team};
const ir_rule ir_rule_UNROLL_TURNS = {no_sites, no_draw, is_applied, describe_turns};
const ir_rule ir_rule_JAM_TURNS = {no_sites, no_draw, is_applied, describe_jam_turns};
const ir_rule ir_rule_SPLIT_LANES = {no_sites, no_draw, is_applied, describe_split};
const ir_rule ir_rule_COARSEN = {no_sites, no_draw, is_applied, describe_coarsen};
const ir_rule ir_rule_COARSEN_THREADS = {no_sites, no_draw, is_applied, describe_threads};
const ir_rule ir_rule_RESIZE_BLOCK = {no_sites, no_draw, is_applied, describe_resize};
const ir_rule ir_rule_RAISE_LOOP = {no_sites, no_draw, is_applied, describe_raise};
