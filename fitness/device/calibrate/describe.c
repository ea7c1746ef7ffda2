/* Writes what was measured as a GPU description. */
#include "base/file.h"
#include "base/json.h"
#include "fitness/device/calibrate/calibrate_impl.h"

#include <stdlib.h>
#include <string.h>

static const calibrate_row *row_of(const calibration *c, gpu_key key) {
    for (size_t i = 0; i < c->count; i++) {
        if (c->rows[i].key == key && c->rows[i].value > 0)
            return &c->rows[i];
    }
    return NULL;
}

/* A number with its source; what the base derived from others will be derived again. */
static void put_number(const device *d, const gpu *base, const calibration *c, gpu_key key,
                       ev_str *text) {
    const calibrate_row *row = row_of(c, key);
    const gpu_number *known = &base->numbers[key];
    double value = 0;
    const char *name = gpu_key_name(key);
    if (row != NULL)
        ev_str_printf(
            text, ",\n \"%s\": {\"v\": %.6g, \"src\": \"%s\", \"note\": \"%s; spread %.1f %%\"}",
            name, row->value, device_properties_of(d)->modelled ? "modelled" : "measured", row->doc,
            100 * row->spread);
    else if (device_number(d, key, &value))
        ev_str_printf(text, ",\n \"%s\": {\"v\": %.10g, \"src\": \"the driver\"}", name, value);
    else if (strncmp(known->source, "derived: ", 9) != 0) {
        json_t *source = json_string(known->source);
        char *quoted = json_dumps(source, JSON_ENCODE_ANY);
        ev_str_printf(text, ",\n \"%s\": {\"v\": %.10g, \"src\": %s}", name, known->value,
                      quoted != NULL ? quoted : "\"\"");
        free(quoted);
        json_decref(source);
    }
}

static void put_head(const device *d, const gpu *base, const calibration *c, const char *date,
                     ev_str *text) {
    const device_properties *p = device_properties_of(d);
    ev_str_printf(
        text,
        "{\n \"name\": \"%s\",\n \"cc\": \"%d.%d\",\n \"calibrated\": {\"device\": \"%s\", "
        "\"times\": \"%s\", \"driver\": \"%s\", \"clock_MHz\": %.6g, \"date\": \"%s\", "
        "\"base\": \"%s\"}",
        p->name, p->sm / 10, p->sm % 10, p->id, p->modelled ? "modelled" : "measured", p->driver,
        c->clock_mhz, date, base->id);
}

/* What was written has to be a description. */
static ev_status read_back(const char *path, ev_error *err) {
    gpu *g = NULL;
    ev_error why;
    ev_status status = gpu_load(path, &g, &why);
    gpu_free(g);
    return status == EV_OK
               ? EV_OK
               : ev_fail(err, status, "the numbers make no description together: %s", why.text);
}

ev_status calibrate_write(const device *d, const gpu *base, const calibration *c, const char *date,
                          const char *path, ev_error *err) {
    ev_str text = EV_STR_EMPTY;
    put_head(d, base, c, date, &text);
    for (int i = 0; i < GPU_KEY_COUNT; i++)
        put_number(d, base, c, (gpu_key)i, &text);
    ev_str_append(&text, "\n}\n");
    ev_status status = ev_str_status(&text, err);
    if (status == EV_OK)
        status = ev_file_write(path, ev_str_text(&text), text.length, err);
    ev_str_free(&text);
    return status == EV_OK ? read_back(path, err) : status;
}
