/* evoke devices: the GPUs of this machine, and one virtual machine for each GPU description. */
#include "tuner/cli/cmd.h"

#include "base/table.h"
#include "fitness/device/device.h"

static json_t *device_json(const device_properties *p) {
    return json_pack("{s:s, s:s, s:i, s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:I}", "device", p->id,
                     "name", p->name, "sm", p->sm, "time_kind",
                     p->modelled ? "modelled" : "measured", "driver", p->driver, "twin", p->twin,
                     "note", p->twin_note, "max_threads_per_block", (int)p->max_threads_per_block,
                     "max_shared_per_block", (int)p->max_shared_per_block,
                     "max_registers_per_thread", (int)p->max_registers_per_thread, "memory_bytes",
                     (json_int_t)p->memory_bytes);
}

static void device_row(const device_properties *p, table *rows) {
    table_cell(rows, "%s", p->id);
    table_cell(rows, "%s", p->name);
    table_cell(rows, "%d.%d", p->sm / 10, p->sm % 10);
    table_cell(rows, "%.0f GB", (double)p->memory_bytes * 1e-9);
    table_cell(rows, "%.0f KiB", (double)p->max_shared_per_block / 1024);
    table_cell(rows, "%s", p->modelled ? "modelled" : "measured");
}

/* Adds the device to whichever is there. */
static ev_status add_device(const char *id, json_t *list, table *rows, ev_str *notes,
                            ev_error *err) {
    device *d = NULL;
    EV_TRY(device_open(id, &d, err));
    if (list != NULL)
        (void)json_array_append_new(list, device_json(device_properties_of(d)));
    else
        device_row(device_properties_of(d), rows);
    if (device_properties_of(d)->twin_note[0] != '\0')
        ev_str_printf(notes, "\n%s: %s.\n", id, device_properties_of(d)->twin_note);
    device_close(d);
    return EV_OK;
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
    static const char *const columns[] = {"device",        "GPU",   ">capability", ">memory",
                                          ">shared/block", "times", NULL};
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
    ev_str_append(c->out, "\nvm:FILE.json takes a GPU description of one's own.");
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
