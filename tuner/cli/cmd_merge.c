/* evoke export --merge: several bundles to one. */
#include "tuner/cli/cmd.h"

#include "base/table.h"
#include "bundle/bundle.h"
#include "bundle/merge.h"

#include <stdlib.h>

static json_t *row_json(const merge_row *r) {
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:f, s:f, s:s}", "kernel", r->kernel, "gpu", r->gpu,
                     "kept", r->kept, "left_out", r->left_out, "sha256", r->sha256, "kept_gain",
                     r->kept_gain, "left_out_gain", r->left_gain, "reason",
                     merge_reason_words(r->reason));
}

static void gain_cell(table *t, double gain) {
    if (gain > 0)
        table_cell(t, "%.3fx", gain);
    else
        table_cell(t, "-");
}

static ev_status print_rows(const merged *m, ev_str *out, ev_error *err) {
    static const char *const columns[] = {"kernel",   "gpu",   "kept",   ">gain",
                                          "left out", ">gain", "reason", NULL};
    table *t = m->row_count > 0 ? table_new(columns) : NULL;
    if (m->row_count == 0)
        return EV_OK;
    if (t == NULL)
        return ev_fail_memory(err, 1);
    for (size_t i = 0; i < m->row_count; i++) {
        const merge_row *r = &m->rows[i];
        table_cell(t, "%s", r->kernel);
        table_cell(t, "%s", r->gpu);
        table_cell(t, "%s", r->kept);
        gain_cell(t, r->kept_gain);
        table_cell(t, "%s", r->left_out);
        gain_cell(t, r->left_gain);
        table_cell(t, "%s", merge_reason_words(r->reason));
    }
    ev_status status = table_print(t, out, err);
    table_free(t);
    ev_str_char(out, '\n');
    return status;
}

static ev_status print(cmd_context *c, const merged *m, const char *out, ev_error *err) {
    size_t variants = 0;
    for (size_t i = 0; i < m->content.kernel_count; i++)
        variants += m->content.kernels[i].variant_count;
    if (cli_flag(c->args, CLI_OPT_JSON)) {
        json_t *rows = json_array();
        for (size_t i = 0; i < m->row_count; i++)
            (void)json_array_append_new(rows, row_json(&m->rows[i]));
        return cmd_print_json(c,
                              json_pack("{s:s, s:I, s:I, s:o}", "bundle", out, "kernels",
                                        (json_int_t)m->content.kernel_count, "variants",
                                        (json_int_t)variants, "left_out", rows),
                              err);
    }
    EV_TRY(print_rows(m, c->out, err));
    ev_str_printf(c->out, "%s: %zu kernels, %zu variants; %zu left out\n", out,
                  m->content.kernel_count, variants, m->row_count);
    return EV_OK;
}

static ev_status merge(cmd_context *c, bundle *const *from, size_t count, const char *out,
                       ev_error *err) {
    ev_arena *arena = ev_arena_new();
    merged m;
    if (arena == NULL)
        return ev_fail_memory(err, 1);
    sign_key *key = NULL;
    ev_status status = cmd_read_key(c, &key, err);
    if (status == EV_OK)
        status = bundle_merge(from, count, arena, &m, err);
    if (status == EV_OK)
        status = bundle_write_signed(out, &m.content, key, err);
    sign_key_free(key);
    if (status == EV_OK)
        status = print(c, &m, out, err);
    ev_arena_free(arena);
    return status;
}

ev_status cmd_merge(cmd_context *c, ev_error *err) {
    const char *out = cli_text(c->args, CLI_OPT_EXPORT_OUT);
    size_t count = c->args->operand_count, opened = 0;
    if (out == NULL || count < 2 || cli_text(c->args, CLI_OPT_RECORDS) != NULL)
        return ev_fail(err, EV_BAD,
                       "export --merge needs two bundles or more and --out BUNDLE, and "
                       "takes no --records");
    EV_TRY(bundle_check_target(out, err));
    bundle **all = calloc(count, sizeof *all);
    ev_status status = all != NULL ? EV_OK : ev_fail_memory(err, count * sizeof *all);
    for (; status == EV_OK && opened < count; opened += status == EV_OK)
        status = bundle_open(c->args->operands[opened], &all[opened], err);
    if (status == EV_OK)
        status = merge(c, all, count, out, err);
    while (opened > 0)
        bundle_close(all[--opened]);
    free(all);
    return status;
}
