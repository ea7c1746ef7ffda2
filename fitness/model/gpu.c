/* GPU descriptions: reads the JSON files, holds them against the key table, fills what is unknown.
 */
#include "fitness/model/gpu.h"

#include "base/arena.h"
#include "base/file.h"
#include "base/json.h"
#include "base/str.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The object that callers see, and the memory behind it. */
typedef struct gpu_owner {
    gpu seen; /* first: a gpu is the address of its owner */
    ev_arena *arena;
} gpu_owner;

typedef struct key_row {
    const char *name;
    const char *unit;
    double low, high;
    const char *rule; /* text of the default */
    const char *doc;
} key_row;

static const key_row KEYS[] = {
#define GPU_KEY(id, key, unit, low, high, otherwise, doc) {key, unit, low, high, #otherwise, doc},
#include "fitness/model/gpu_keys.def"
#undef GPU_KEY
};

_Static_assert(sizeof KEYS / sizeof KEYS[0] == GPU_KEY_COUNT, "one row a key");

/* The defaults; NAN for a key that must be given. Rows use rows above them, which are filled by
 * then. */
static double default_of(const gpu *g, gpu_key key) {
#define REQUIRED NAN
#define V(id) (g->numbers[GPU_##id].value)
    switch (key) {
#define GPU_KEY(id, key, unit, low, high, otherwise, doc)                                          \
    case GPU_##id:                                                                                 \
        return (otherwise);
#include "fitness/model/gpu_keys.def"
#undef GPU_KEY
    case GPU_KEY_COUNT:
        break;
    }
#undef V
#undef REQUIRED
    return NAN;
}

static const ev_json_key NUMBER_KEYS[] = {
    {"v", EV_JSON_ANY, true, "the number; null where it is not known"},
    {"src", EV_JSON_ANY, false, "where it comes from"},
    {"verified", EV_JSON_BOOL, false, "whether somebody looked it up there again"},
    {"note", EV_JSON_STRING, false, "what else is known of it"},
};

static ev_status read_number(const ev_json *doc, const json_t *value, gpu_key key, ev_arena *arena,
                             gpu_number *out, ev_error *err) {
    const key_row *row = &KEYS[key];
    EV_TRY(ev_json_check(doc, value, row->name, NUMBER_KEYS,
                         sizeof NUMBER_KEYS / sizeof NUMBER_KEYS[0], err));
    const json_t *number = json_object_get(value, "v");
    if (json_is_null(number))
        return EV_OK;
    char where[64];
    (void)snprintf(where, sizeof where, "%s.v", row->name);
    if (!json_is_number(number))
        return ev_json_fail(doc, where, err, "'v' of '%s' must be a number or null", row->name);
    double v = json_number_value(number);
    if (!(v >= row->low && v <= row->high))
        return ev_json_fail(doc, where, err, "%s is %g%s%s; it must be from %g to %g (%s)",
                            row->name, v, row->unit[0] ? " " : "", row->unit, row->low, row->high,
                            row->doc);
    out->value = v;
    out->source = ev_arena_strdup(arena, ev_json_text(value, "src", "no source given"));
    out->is_checked = json_is_true(json_object_get(value, "verified"));
    return EV_OK;
}

static ev_status fill_defaults(const ev_json *doc, gpu *g, ev_arena *arena, ev_error *err) {
    for (int i = 0; i < GPU_KEY_COUNT; i++) {
        gpu_number *number = &g->numbers[i];
        if (number->source != NULL)
            continue;
        number->value = default_of(g, (gpu_key)i);
        if (isnan(number->value))
            return ev_json_fail(doc, json_object_get(doc->root, KEYS[i].name) ? KEYS[i].name : "",
                                err, "'%s' is not given and cannot be derived (%s)", KEYS[i].name,
                                KEYS[i].doc);
        number->source = ev_arena_printf(arena, "derived: %s", KEYS[i].rule);
    }
    return EV_OK;
}

/* What no single range says: numbers that contradict each other. */
static ev_status check_together(const ev_json *doc, const gpu *g, ev_error *err) {
    if (gpu_get(g, GPU_LAT_L2) < gpu_get(g, GPU_LAT_L1))
        return ev_json_fail(doc, "lat_l2", err, "lat_l2 (%g) is below lat_l1 (%g)",
                            gpu_get(g, GPU_LAT_L2), gpu_get(g, GPU_LAT_L1));
    if (gpu_get(g, GPU_LAT_DRAM) < gpu_get(g, GPU_LAT_L2))
        return ev_json_fail(doc, "lat_dram", err, "lat_dram (%g) is below lat_l2 (%g)",
                            gpu_get(g, GPU_LAT_DRAM), gpu_get(g, GPU_LAT_L2));
    if (gpu_get(g, GPU_SHARED_BLOCK) > gpu_get(g, GPU_SHARED_SM))
        return ev_json_fail(doc, "smem_max_per_block_B", err,
                            "a block may not have more shared memory than the SM");
    return EV_OK;
}

static ev_status read_capability(const ev_json *doc, int *sm, ev_error *err) {
    uint32_t major = 0, minor = 0;
    const char *text = ev_json_text(doc->root, "cc", "");
    const char *end = ev_text_u32(ev_text_u32(text, "", &major), ".", &minor);
    if (end == NULL || *end != '\0' || major < 1 || major > 99 || minor > 9)
        return ev_json_fail(doc, "cc", err, "'%s' is no compute capability; write \"9.0\"", text);
    *sm = (int)(major * 10 + minor);
    return EV_OK;
}

static ev_status check_keys(const ev_json *doc, ev_error *err) {
    ev_json_key keys[GPU_KEY_COUNT + 4] = {
        {"name", EV_JSON_STRING, true, "the GPU's full name"},
        {"cc", EV_JSON_STRING, true, "compute capability, \"9.0\""},
        {"driver_names", EV_JSON_ARRAY, false, "the names that drivers give this GPU"},
        {"calibrated", EV_JSON_OBJECT, false, "device, driver, clock and date of a calibration"},
    };
    for (int i = 0; i < GPU_KEY_COUNT; i++)
        keys[i + 4] = (ev_json_key){KEYS[i].name, EV_JSON_OBJECT, false, KEYS[i].doc};
    return ev_json_check(doc, doc->root, "", keys, GPU_KEY_COUNT + 4, err);
}

static ev_status read_names(const ev_json *doc, gpu_owner *o, ev_error *err) {
    const json_t *list = json_object_get(doc->root, "driver_names");
    size_t count = json_array_size(list);
    const char **names = ev_arena_alloc(o->arena, (count + 1) * sizeof *names);
    if (names == NULL)
        return ev_fail_memory(err, count * sizeof *names);
    for (size_t i = 0; i < count; i++) {
        if (!json_is_string(json_array_get(list, i)))
            return ev_json_fail(doc, "driver_names", err, "entry %zu of 'driver_names' is no text",
                                i);
        names[i] = ev_arena_strdup(o->arena, json_string_value(json_array_get(list, i)));
    }
    o->seen.driver_names = names;
    o->seen.driver_name_count = count;
    return EV_OK;
}

static ev_status read_all(const ev_json *doc, const char *id, gpu_owner *o, ev_error *err) {
    EV_TRY(check_keys(doc, err));
    gpu *g = &o->seen;
    EV_TRY(read_capability(doc, &g->sm, err));
    g->id = ev_arena_strdup(o->arena, id);
    g->name = ev_arena_strdup(o->arena, ev_json_text(doc->root, "name", ""));
    EV_TRY(read_names(doc, o, err));
    for (int i = 0; i < GPU_KEY_COUNT; i++) {
        const json_t *value = json_object_get(doc->root, KEYS[i].name);
        if (value != NULL)
            EV_TRY(read_number(doc, value, (gpu_key)i, o->arena, &g->numbers[i], err));
    }
    EV_TRY(fill_defaults(doc, g, o->arena, err));
    if (ev_arena_failed(o->arena))
        return ev_fail_memory(err, ev_arena_bytes(o->arena));
    return check_together(doc, g, err);
}

static ev_status load_file(const char *path, const char *id, gpu **out, ev_error *err) {
    ev_json *doc = NULL;
    EV_TRY(ev_json_load(path, &doc, err));
    gpu_owner *o = calloc(1, sizeof *o);
    ev_arena *arena = ev_arena_new();
    if (o == NULL || arena == NULL) {
        free(o);
        ev_arena_free(arena);
        ev_json_free(doc);
        return ev_fail_memory(err, sizeof *o);
    }
    o->arena = arena;
    ev_status status = read_all(doc, id, o, err);
    ev_json_free(doc);
    if (status != EV_OK)
        gpu_free(&o->seen);
    else
        *out = &o->seen;
    return status;
}

/* HOME/fitness/model/gpus; malloc'ed. */
static ev_status shipped_folder(char **out, ev_error *err) {
    char *home = ev_path_home();
    if (home == NULL)
        return ev_fail(err, EV_BAD,
                       "the folder with the GPU descriptions is not there; set EVOKE_HOME to the "
                       "folder that holds fitness/model/gpus");
    *out = ev_path_join(home, "fitness/model/gpus");
    free(home);
    return *out == NULL ? ev_fail_memory(err, 1) : EV_OK;
}

static ev_status fail_unknown(const char *id, ev_error *err) {
    char **ids = NULL;
    size_t count = 0;
    EV_TRY(gpu_list(&ids, &count, err));
    ev_str known = EV_STR_EMPTY;
    for (size_t i = 0; i < count; i++)
        ev_str_printf(&known, "%s%s", i > 0 ? ", " : "", ids[i]);
    ev_status status = ev_fail(err, EV_BAD,
                               "no GPU model '%s'; there are %s, or give a description's path "
                               "(FILE.json)",
                               id, ev_str_text(&known));
    ev_str_free(&known);
    gpu_list_free(ids, count);
    return status;
}

static bool is_path(const char *text) {
    size_t length = strlen(text);
    return strchr(text, '/') != NULL || (length > 5 && strcmp(text + length - 5, ".json") == 0);
}

/* The id of a file of one's own: its name without folder and ".json". */
static ev_status load_path(const char *path, gpu **out, ev_error *err) {
    const char *slash = strrchr(path, '/');
    const char *base = slash != NULL ? slash + 1 : path;
    char id[64];
    (void)snprintf(id, sizeof id, "%s", base);
    size_t length = strlen(id);
    if (length > 5 && strcmp(id + length - 5, ".json") == 0)
        id[length - 5] = '\0';
    return load_file(path, id, out, err);
}

ev_status gpu_load(const char *id_or_path, gpu **out, ev_error *err) {
    if (is_path(id_or_path))
        return load_path(id_or_path, out, err);
    char *folder = NULL;
    EV_TRY(shipped_folder(&folder, err));
    char name[128];
    (void)snprintf(name, sizeof name, "%.100s.json", id_or_path);
    char *path = ev_path_join(folder, name);
    free(folder);
    if (path == NULL)
        return ev_fail_memory(err, sizeof name);
    ev_status status = id_or_path[0] != '\0' && ev_path_exists(path)
                           ? load_file(path, id_or_path, out, err)
                           : fail_unknown(id_or_path, err);
    free(path);
    return status;
}

void gpu_free(gpu *g) {
    if (g == NULL)
        return;
    gpu_owner *o = (gpu_owner *)g;
    ev_arena_free(o->arena);
    free(o);
}

static int compare_ids(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Appends the id of one file name; anything but NAME.json is passed over. */
static ev_status list_one(const char *name, char ***ids, size_t *count, ev_error *err) {
    size_t length = strlen(name);
    if (name[0] == '.' || length <= 5 || strcmp(name + length - 5, ".json") != 0)
        return EV_OK;
    char **more = realloc(*ids, (*count + 1) * sizeof **ids);
    if (more == NULL)
        return ev_fail_memory(err, (*count + 1) * sizeof **ids);
    *ids = more;
    more[*count] = strndup(name, length - 5);
    if (more[*count] == NULL)
        return ev_fail_memory(err, length);
    (*count)++;
    return EV_OK;
}

ev_status gpu_list(char ***ids, size_t *count, ev_error *err) {
    char *folder = NULL;
    EV_TRY(shipped_folder(&folder, err));
    DIR *dir = opendir(folder);
    if (dir == NULL) {
        ev_status failed = ev_fail(err, EV_BAD, "%s: %s", folder, strerror(errno));
        free(folder);
        return failed;
    }
    char **found = NULL;
    size_t number = 0;
    ev_status status = EV_OK;
    for (struct dirent *at = readdir(dir); at != NULL && status == EV_OK; at = readdir(dir))
        status = list_one(at->d_name, &found, &number, err);
    (void)closedir(dir);
    free(folder);
    if (status != EV_OK) {
        gpu_list_free(found, number);
        return status;
    }
    if (number > 0)
        qsort(found, number, sizeof *found, compare_ids);
    *ids = found;
    *count = number;
    return EV_OK;
}

void gpu_list_free(char **ids, size_t count) {
    for (size_t i = 0; i < count; i++)
        free(ids[i]);
    free(ids);
}

double gpu_get(const gpu *g, gpu_key key) {
    assert((unsigned)key < GPU_KEY_COUNT);
    return g->numbers[key].value;
}

const char *gpu_key_name(gpu_key key) {
    assert((unsigned)key < GPU_KEY_COUNT);
    return KEYS[key].name;
}

const char *gpu_key_unit(gpu_key key) {
    assert((unsigned)key < GPU_KEY_COUNT);
    return KEYS[key].unit;
}

const char *gpu_key_doc(gpu_key key) {
    assert((unsigned)key < GPU_KEY_COUNT);
    return KEYS[key].doc;
}

void gpu_key_range(gpu_key key, double *low, double *high) {
    assert((unsigned)key < GPU_KEY_COUNT);
    *low = KEYS[key].low;
    *high = KEYS[key].high;
}

bool gpu_key_find(const char *name, gpu_key *out) {
    for (int i = 0; i < GPU_KEY_COUNT; i++) {
        if (strcmp(KEYS[i].name, name) == 0) {
            *out = (gpu_key)i;
            return true;
        }
    }
    return false;
}
