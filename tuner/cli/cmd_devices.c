/* evoke devices: the GPUs of this machine, and one virtual machine for each GPU description. */
#include "tuner/cli/cmd.h"

#include "base/table.h"
#include "fitness/device/device.h"
#include "fitness/model/gpu.h"

#include <string.h>

#define MODELLED "vm:"

/* The description of a virtual machine's GPU. *out is NULL for other devices. */
static ev_status description_of(const char *id, gpu **out, ev_error *err) {
    size_t length = strlen(MODELLED);
    *out = NULL;
    return strncmp(id, MODELLED, length) == 0 ? gpu_load(id + length, out, err) : EV_OK;
}

/* Every number of a description: its value, who says so, and whether that was read there. */
static json_t *figures_json(const gpu *g) {
    json_t *figures = json_object();
    for (int i = 0; i < GPU_KEY_COUNT; i++) {
        const gpu_number *number = &g->numbers[i];
        (void)json_object_set_new(figures, gpu_key_name((gpu_key)i),
                                  json_pack("{s:f, s:s, s:s, s:b}", "value", number->value, "unit",
                                            gpu_key_unit((gpu_key)i), "source", number->source,
                                            "checked", number->is_checked));
    }
    return figures;
}

static int count_checked(const gpu *g) {
    int checked = 0;
    for (int i = 0; i < GPU_KEY_COUNT; i++)
        checked += g->numbers[i].is_checked;
    return checked;
}

static json_t *device_json(const device_properties *p) {
    return json_pack("{s:s, s:s, s:i, s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:I}", "device", p->id,
                     "name", p->name, "sm", p->sm, "time_kind",
                     p->modelled ? "modelled" : "measured", "driver", p->driver, "twin", p->twin,
                     "note", p->twin_note, "max_threads_per_block", (int)p->max_threads_per_block,
                     "max_shared_per_block", (int)p->max_shared_per_block,
                     "max_registers_per_thread", (int)p->max_registers_per_thread, "memory_bytes",
                     (json_int_t)p->memory_bytes);
}

static void device_row(const device_properties *p, const gpu *g, table *rows) {
    table_cell(rows, "%s", p->id);
    table_cell(rows, "%s", p->name);
    table_cell(rows, "%d.%d", p->sm / 10, p->sm % 10);
    table_cell(rows, "%.0f GB", (double)p->memory_bytes * 1e-9);
    table_cell(rows, "%.0f KiB", (double)p->max_shared_per_block / 1024);
    table_cell(rows, "%s", p->modelled ? "modelled" : "measured");
    if (g != NULL)
        table_cell(rows, "%d of %d", count_checked(g), GPU_KEY_COUNT);
    else
        table_cell(rows, "-");
}

/* Adds the device to whichever is there. */
static ev_status add_device(const char *id, json_t *list, table *rows, ev_str *notes,
                            ev_error *err) {
    device *d = NULL;
    gpu *g = NULL;
    EV_TRY(description_of(id, &g, err));
    ev_status status = device_open(id, &d, err);
    if (status == EV_OK && list != NULL) {
        json_t *row = device_json(device_properties_of(d));
        if (g != NULL)
            (void)json_object_set_new(row, "figures", figures_json(g));
        (void)json_array_append_new(list, row);
    } else if (status == EV_OK) {
        device_row(device_properties_of(d), g, rows);
    }
    if (status == EV_OK && device_properties_of(d)->twin_note[0] != '\0')
        ev_str_printf(notes, "\n%s: %s.\n", id, device_properties_of(d)->twin_note);
    device_close(d);
    gpu_free(g);
    return status;
}

static ev_status add_all(json_t *list, table *rows, ev_str *notes, ev_error *err) {
    char **ids = NULL;
    size_t count = 0;
    EV_TRY(device_list(&ids, &count, err));
    ev_status status = EV_OK;
    for (size_t i = 0; i < count && status == EV_OK; i++)
        status = add_device(ids[i], list, rows, notes, err);
    device_list_free(ids, count);
    return status;
}

/* Why there is no cuda:N: what its opening says. "" where there is one. */
static void say_why_none(ev_error *why) {
    device *d = NULL;
    if (device_open("cuda:0", &d, why) == EV_OK)
        why->text[0] = '\0';
    device_close(d);
}

static ev_status print_devices(cmd_context *c, ev_error *err) {
    static const char *const columns[] = {"device",        "GPU",   ">capability",      ">memory",
                                          ">shared/block", "times", ">checked figures", NULL};
    table *rows = table_new(columns);
    if (rows == NULL)
        return ev_fail_memory(err, 1);
    ev_str notes = EV_STR_EMPTY;
    ev_status status = add_all(NULL, rows, &notes, err);
    if (status == EV_OK)
        status = table_print(rows, c->out, err);
    ev_str_append(c->out, ev_str_text(&notes));
    ev_str_free(&notes);
    table_free(rows);
    ev_error why = {0};
    say_why_none(&why);
    ev_str_append(c->out,
                  "\nvm:FILE.json takes a GPU description of one's own. Checked figures were read "
                  "in a named source; the others\nare remembered or derived, as --json says "
                  "of each.");
    ev_str_printf(c->out, why.text[0] != '\0' ? " There is no cuda:0: %s.\n" : "%s\n", why.text);
    return status;
}

ev_status cmd_devices(cmd_context *c, ev_error *err) {
    if (!cli_flag(c->args, CLI_OPT_JSON))
        return print_devices(c, err);
    json_t *list = json_array();
    ev_str notes = EV_STR_EMPTY;
    ev_status status = add_all(list, NULL, &notes, err);
    ev_str_free(&notes);
    if (status == EV_OK) {
        ev_error why = {0};
        say_why_none(&why);
        json_t *all = json_pack("{s:o}", "devices", list);
        if (why.text[0] != '\0')
            (void)json_object_set_new(all, "no_gpu", json_string(why.text));
        return cmd_print_json(c, all, err);
    }
    json_decref(list);
    return status;
}
