/* Reads a network: layers of equal shape share an object, which lists their names. */
#include "tuner/exports/network.h"

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "corpora/corpus.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define FOLDER "corpora/networks"
#define SHAPE_MOST 16

static const char *const phase_names[LAYER_PHASES] = {"fwd", "ig", "wg", "update"};

const char *layer_phase_name(layer_phase phase) {
    return phase_names[phase];
}

static const ev_json_key root_keys[] = {
    {"network", EV_JSON_STRING, true, "name"},
    {"doc", EV_JSON_STRING, true, "what it is, and where its layers are published"},
    {"batch", EV_JSON_INTEGER, false, "images or sequences of an iteration (--batch)"},
    {"density", EV_JSON_NUMBER, false, "share of activations that a ReLU keeps (--density)"},
    {"layers", EV_JSON_ARRAY, true, "the times that kernels can stand in for"},
    {"rows", EV_JSON_ARRAY, false, "all layers with their traffic, for an export without --base"},
};

static const ev_json_key layer_keys[] = {
    {"names", EV_JSON_ARRAY, true, "the layers, as --base calls them"},
    {"phase", EV_JSON_STRING, true, "fwd, ig, wg or update"},
    {"kernel", EV_JSON_STRING, true, "the kernel of the bundle"},
    {"from", EV_JSON_STRING, false, "a shape of corpora/shapes.def"},
    {"shape", EV_JSON_OBJECT, false, "further numbers; \"batch\" and \"density\" stand for theirs"},
    {"split", EV_JSON_STRING, false, "the number of the shape that several launches may share"},
    {"launches", EV_JSON_INTEGER, false, "launches of this shape in an iteration; 1"},
    {"without", EV_JSON_STRING, false, "work of the layer that the kernel leaves out"},
};

static const ev_json_key row_keys[] = {
    {"name", EV_JSON_STRING, true, "of the layer"},
    {"allreduce_bytes", EV_JSON_INTEGER, true, "gradients that are reduced over all ranks"},
};

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

typedef struct reading {
    ev_arena *arena;
    const ev_json *doc;
    network *net;
    network_layer *layers;
    size_t room;
} reading;

static ev_status fail_memory(const reading *r, ev_error *err) {
    return ev_fail_memory(err, ev_arena_bytes(r->arena));
}

/* ---- shapes ---- */

/* A number in place of an earlier one of its name. */
static bool put_number(network_layer *layer, const char *name, bool is_real, double value) {
    size_t at = 0;
    while (at < layer->shape_count && strcmp(layer->shape[at].name, name) != 0)
        at++;
    if (at == SHAPE_MOST)
        return false;
    layer->shape_count += at == layer->shape_count;
    layer->shape[at] = (bundle_number){name, is_real, value};
    return true;
}

static ev_status add_corpus(const reading *r, const char *where, const char *from,
                            network_layer *layer, ev_error *err) {
    const corpus_shape *shape = corpus_shape_find(from);
    if (shape == NULL)
        return ev_json_fail(r->doc, where, err,
                            "there is no shape '%s'; corpora/shapes.def has them", from);
    for (size_t i = 0; i < shape->count; i++)
        (void)put_number(layer, shape->keys[i], false, (double)shape->values[i]);
    return EV_OK;
}

/* A number, "batch" or "density". */
static bool read_number(const reading *r, const json_t *value, bool *is_real, double *out) {
    *is_real = json_is_real(value);
    if (json_is_number(value)) {
        *out = json_number_value(value);
        return true;
    }
    const char *word = json_is_string(value) ? json_string_value(value) : "";
    *is_real = strcmp(word, "density") == 0;
    *out = *is_real ? r->net->density : (double)r->net->batch;
    return *is_real || strcmp(word, "batch") == 0;
}

static ev_status add_shape(const reading *r, const char *where, const json_t *shape,
                           network_layer *layer, ev_error *err) {
    const char *name = NULL;
    json_t *value = NULL;
    json_object_foreach((json_t *)shape, name, value) {
        bool is_real = false;
        double number = 0;
        if (!read_number(r, value, &is_real, &number))
            return ev_json_fail(
                r->doc, where, err,
                "the shape's '%s' is neither a number nor \"batch\" nor \"density\"", name);
        const char *kept = ev_arena_printf(r->arena, "%s", name);
        if (kept == NULL)
            return fail_memory(r, err);
        if (!put_number(layer, kept, is_real, number))
            return ev_json_fail(r->doc, where, err, "a shape has at most %d numbers", SHAPE_MOST);
    }
    return EV_OK;
}

/* ---- layers ---- */

static ev_status read_phase(const reading *r, const char *where, const char *word, layer_phase *out,
                            ev_error *err) {
    for (int i = 0; i < LAYER_PHASES; i++) {
        if (strcmp(phase_names[i], word) == 0) {
            *out = (layer_phase)i;
            return EV_OK;
        }
    }
    return ev_json_fail(r->doc, where, err, "the phase '%s' is not fwd, ig, wg or update", word);
}

static const char *copy_text(const reading *r, const json_t *object, const char *key) {
    const char *text = ev_json_text(object, key, NULL);
    return text != NULL ? ev_arena_printf(r->arena, "%s", text) : NULL;
}

static bool has_number(const network_layer *layer, const char *name) {
    for (size_t i = 0; i < layer->shape_count; i++) {
        if (strcmp(layer->shape[i].name, name) == 0)
            return true;
    }
    return false;
}

static ev_status read_layer(const reading *r, const char *where, const json_t *object,
                            network_layer *out, ev_error *err) {
    EV_TRY(ev_json_check(r->doc, object, where, layer_keys, COUNT(layer_keys), err));
    *out = (network_layer){.kernel = copy_text(r, object, "kernel"),
                           .split = copy_text(r, object, "split"),
                           .without = copy_text(r, object, "without")};
    out->without = out->without != NULL ? out->without : "";
    out->shape = ev_arena_alloc(r->arena, SHAPE_MOST * sizeof *out->shape);
    if (out->kernel == NULL || out->shape == NULL)
        return fail_memory(r, err);
    EV_TRY(read_phase(r, where, ev_json_text(object, "phase", ""), &out->phase, err));
    json_int_t launches = ev_json_integer(object, "launches", 1);
    if (launches < 1)
        return ev_json_fail(r->doc, where, err, "'launches' is below 1");
    out->launches = (uint64_t)launches;
    const char *from = ev_json_text(object, "from", NULL);
    if (from != NULL)
        EV_TRY(add_corpus(r, where, from, out, err));
    EV_TRY(add_shape(r, where, json_object_get(object, "shape"), out, err));
    if (out->split != NULL && !has_number(out, out->split))
        return ev_json_fail(r->doc, where, err, "the shape has no number '%s' to split",
                            out->split);
    return EV_OK;
}

static bool is_listed(const network *n, const char *name, layer_phase phase) {
    for (size_t i = 0; i < n->layer_count; i++) {
        if (n->layers[i].phase == phase && strcasecmp(n->layers[i].name, name) == 0)
            return true;
    }
    return false;
}

/* One entry for each name of an object. */
static ev_status add_layers(reading *r, size_t index, const json_t *object, ev_error *err) {
    char where[48];
    network_layer like;
    (void)snprintf(where, sizeof where, "layers[%zu]", index);
    EV_TRY(read_layer(r, where, object, &like, err));
    const json_t *names = json_object_get(object, "names");
    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));
        if (name == NULL || name[0] == '\0')
            return ev_json_fail(r->doc, where, err, "names[%zu] is no text", i);
        if (is_listed(r->net, name, like.phase))
            return ev_json_fail(r->doc, where, err,
                                "the layer '%s' stands twice for the phase %s; a kernel stands in "
                                "for the whole of a time",
                                name, layer_phase_name(like.phase));
        network_layer *one = &r->layers[r->net->layer_count++];
        *one = like;
        one->name = ev_arena_printf(r->arena, "%s", name);
        if (one->name == NULL)
            return fail_memory(r, err);
    }
    return EV_OK;
}

static ev_status read_layers(reading *r, const json_t *array, ev_error *err) {
    size_t i = 0, names = 0;
    const json_t *object = NULL;
    json_array_foreach(array, i, object) names += json_array_size(json_object_get(object, "names"));
    r->layers = ev_arena_alloc(r->arena, (names + 1) * sizeof *r->layers);
    if (r->layers == NULL)
        return fail_memory(r, err);
    r->net->layers = r->layers;
    json_array_foreach(array, i, object) EV_TRY(add_layers(r, i, object, err));
    return EV_OK;
}

static ev_status read_rows(const reading *r, const json_t *array, ev_error *err) {
    size_t i = 0;
    const json_t *object = NULL;
    network_row *rows = ev_arena_alloc(r->arena, (json_array_size(array) + 1) * sizeof *rows);
    if (rows == NULL)
        return fail_memory(r, err);
    json_array_foreach(array, i, object) {
        char where[48];
        (void)snprintf(where, sizeof where, "rows[%zu]", i);
        EV_TRY(ev_json_check(r->doc, object, where, row_keys, COUNT(row_keys), err));
        rows[i] = (network_row){copy_text(r, object, "name"),
                                (double)ev_json_integer(object, "allreduce_bytes", 0)};
        if (rows[i].name == NULL)
            return fail_memory(r, err);
    }
    r->net->rows = rows;
    r->net->row_count = json_array_size(array);
    return EV_OK;
}

static ev_status read_root(reading *r, uint64_t batch, double density, ev_error *err) {
    const json_t *root = r->doc->root;
    EV_TRY(ev_json_check(r->doc, root, "", root_keys, COUNT(root_keys), err));
    json_int_t own = ev_json_integer(root, "batch", 1);
    r->net->name = copy_text(r, root, "network");
    r->net->doc = copy_text(r, root, "doc");
    r->net->batch = batch;
    if (batch == 0)
        r->net->batch = own > 0 ? (uint64_t)own : 1;
    r->net->density = density >= 0 ? density : ev_json_number(root, "density", 0.5);
    if (r->net->name == NULL || r->net->doc == NULL)
        return fail_memory(r, err);
    if (r->net->density > 1)
        return ev_fail(err, EV_BAD, "the density %g is above 1; --density takes a share of 1",
                       r->net->density);
    EV_TRY(read_layers(r, json_object_get(root, "layers"), err));
    return read_rows(r, json_object_get(root, "rows"), err);
}

/* ---- files ---- */

static int by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static ev_status fail_unknown(const char *name, const char *folder, ev_error *err) {
    char *names[64];
    size_t count = 0;
    ev_str known = EV_STR_EMPTY;
    DIR *dir = opendir(folder);
    for (struct dirent *e = dir != NULL ? readdir(dir) : NULL; e != NULL; e = readdir(dir)) {
        const char *dot = strrchr(e->d_name, '.');
        if (count < COUNT(names) && dot != NULL && strcmp(dot, ".json") == 0)
            count += (names[count] = strndup(e->d_name, (size_t)(dot - e->d_name))) != NULL;
    }
    if (dir != NULL)
        (void)closedir(dir);
    qsort((void *)names, count, sizeof names[0], by_name);
    for (size_t i = 0; i < count; i++) {
        ev_str_printf(&known, "%s%s", i > 0 ? ", " : "", names[i]);
        free(names[i]);
    }
    ev_status status = ev_fail(err, EV_BAD,
                               "there is no network '%s'; %s has %s, and a network of your own is "
                               "given as --network FILE.json (docs/exports.md)",
                               name, folder, count > 0 ? ev_str_text(&known) : "none");
    ev_str_free(&known);
    return status;
}

static bool is_path(const char *text) {
    size_t length = strlen(text);
    return strchr(text, '/') != NULL || (length > 5 && strcmp(text + length - 5, ".json") == 0);
}

static ev_status find_file(ev_arena *arena, const char *name, const char **out, ev_error *err) {
    char *home = ev_path_home();
    if (home == NULL)
        return ev_fail(err, EV_BAD, "the folder " FOLDER " was not found; set EVOKE_HOME");
    const char *folder = ev_arena_printf(arena, "%s/" FOLDER, home);
    free(home);
    *out = folder != NULL ? ev_arena_printf(arena, "%s/%s.json", folder, name) : NULL;
    if (*out == NULL)
        return ev_fail_memory(err, ev_arena_bytes(arena));
    return ev_path_exists(*out) ? EV_OK : fail_unknown(name, folder, err);
}

ev_status network_read(ev_arena *arena, const char *name_or_path, uint64_t batch, double density,
                       network *out, ev_error *err) {
    const char *path = name_or_path;
    ev_json *doc = NULL;
    *out = (network){0};
    if (!is_path(path))
        EV_TRY(find_file(arena, name_or_path, &path, err));
    EV_TRY(ev_json_load(path, &doc, err));
    reading r = {.arena = arena, .doc = doc, .net = out};
    ev_status status = read_root(&r, batch, density, err);
    ev_json_free(doc);
    return status;
}
