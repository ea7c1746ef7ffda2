/* Mutations of a manifest's JSON: a place is chosen, and its value is replaced, removed, repeated,
 * wrapped, or copied from another place. */
#include "tests/fuzz/bundle_mutate.h"

#include <stdio.h>
#include <string.h>

#define MOST_PLACES 4096
#define MOST_REPEATS 300
#define MOST_WRAPS 2500 /* jansson reads 2048 */

typedef struct place {
    json_t *owner;
    const char *key; /* NULL: an array */
    size_t index;
} place;

typedef struct places {
    place all[MOST_PLACES];
    size_t count;
} places;

static void list(json_t *value, places *out) {
    const char *key = NULL;
    json_t *member = NULL;
    json_object_foreach(value, key, member) {
        if (out->count < MOST_PLACES)
            out->all[out->count++] = (place){value, key, 0};
        list(member, out);
    }
    for (size_t i = 0; i < json_array_size(value); i++) {
        if (out->count < MOST_PLACES)
            out->all[out->count++] = (place){value, NULL, i};
        list(json_array_get(value, i), out);
    }
}

static json_t *value_at(const place *p) {
    return p->key != NULL ? json_object_get(p->owner, p->key) : json_array_get(p->owner, p->index);
}

/* Takes the reference over. */
static void set(const place *p, json_t *value) {
    if (p->key != NULL)
        (void)json_object_set_new(p->owner, p->key, value);
    else
        (void)json_array_set_new(p->owner, p->index, value);
}

/* ---- values ---- */

static const char *const words[] = {"N",          "n",     "M",          "TILE",
                                    "scale",      "1",     "0",          "64",
                                    "-1",         "1.5",   "1e308",      "9223372036854775807",
                                    "2147483648", "65536", "4294967296", "missing",
                                    "ranks",      "epoch", "rank",       "2"};
static const char *const joins[] = {" + ", " * ", " / ", " % ", " - ", " < ", " == ", ", "};
static const char *const calls[] = {"", "ceil_div", "min", "max", "div", "pow", "abs", "-"};

#define PICK(rng, list) ((list)[ev_pcg_below((rng), sizeof(list) / sizeof *(list))])

static json_t *expression(ev_pcg *rng) {
    char text[600] = "";
    size_t terms = 1 + ev_pcg_below(rng, 6), at = 0, open = 0;
    for (size_t i = 0; i < terms; i++) {
        const char *call = PICK(rng, calls);
        bool opens = ev_pcg_below(rng, 3) == 0;
        at +=
            (size_t)snprintf(text + at, sizeof text - at, "%s%s%s%s", i > 0 ? PICK(rng, joins) : "",
                             opens ? call : "", opens ? "(" : "", PICK(rng, words));
        open += opens;
    }
    while (open-- > 0 && ev_pcg_below(rng, 30) != 0)
        at += (size_t)snprintf(text + at, sizeof text - at, ")");
    return json_string(text);
}

static json_t *repeated(ev_pcg *rng) {
    static const char *const units[] = {"(", "-", "x", "1+", "../", "ceil_div(", "a/", "N*"};
    char text[4001];
    const char *unit = PICK(rng, units);
    size_t most = 1 + ev_pcg_below(rng, sizeof text - 1), length = strlen(unit);
    for (size_t i = 0; i < most; i++)
        text[i] = unit[i % length];
    text[most] = '\0';
    return json_string(text);
}

static json_t *interesting_text(ev_pcg *rng) {
    static const char *const texts[] = {
        "",         "../../x",  "/etc/passwd",   "kernels/../x", "a//b",        "scalar",
        "inout",    "rank",     "peers",         "sys",          "before",      "after",
        "stage",    "mine",     "get",           "out",          "measured",    "modelled",
        "bold",     "pass",     "slower",        "preserving",   "f64",         "s32",
        "u8",       "f16",      "h200",          "a100",         "\x1b[31mred", "line\nline",
        "%s%n%s%n", "textbook", "manifest.json", "search",       "NVIDIA ",     "\xc3\xa4"};
    return json_string(PICK(rng, texts));
}

static json_t *interesting(ev_pcg *rng) {
    static const json_int_t wholes[] = {0,         1,         -1,        2,         3,
                                        64,        4096,      INT32_MAX, INT32_MIN, UINT32_MAX,
                                        INT64_MAX, INT64_MIN, 1LL << 53, 1LL << 40, 4097};
    static const double reals[] = {0.0, -0.0, 0.5, 1e308, -1e308, 5e-324, 1e19, 9007199254740993.0};
    switch (ev_pcg_below(rng, 10)) {
    case 0:
        return json_null();
    case 1:
        return json_boolean(ev_pcg_below(rng, 2));
    case 2:
    case 3:
        return json_integer(PICK(rng, wholes));
    case 4:
        return json_real(PICK(rng, reals));
    case 5:
    case 6:
        return expression(rng);
    case 7:
        return repeated(rng);
    case 8:
        return interesting_text(rng);
    default:
        return ev_pcg_below(rng, 2) ? json_object() : json_array();
    }
}

/* ---- changes ---- */

static void wrap(const place *p, ev_pcg *rng) {
    json_t *value = json_deep_copy(value_at(p));
    size_t depth = 1 + ev_pcg_below(rng, ev_pcg_below(rng, 4) == 0 ? MOST_WRAPS : 4);
    for (size_t i = 0; i < depth; i++) {
        json_t *outer = ev_pcg_below(rng, 2) ? json_array() : json_object();
        if (json_is_array(outer))
            (void)json_array_append_new(outer, value);
        else
            (void)json_object_set_new(outer, "w", value);
        value = outer;
    }
    set(p, value);
}

/* An array gets copies of a member, an object the same value under many keys. */
static void repeat(const place *p, ev_pcg *rng) {
    json_t *value = value_at(p);
    size_t times = 1 + ev_pcg_below(rng, ev_pcg_below(rng, 4) == 0 ? MOST_REPEATS : 3);
    for (size_t i = 0; i < times; i++) {
        char key[24];
        (void)snprintf(key, sizeof key, "k%zu", i);
        if (p->key == NULL)
            (void)json_array_append_new(p->owner, json_deep_copy(value));
        else if (json_is_array(value))
            (void)json_array_append_new(value, interesting(rng));
        else if (json_is_object(value))
            (void)json_object_set_new(value, key, interesting(rng));
    }
}

static void rename_key(const place *p, ev_pcg *rng, const place *other) {
    json_t *value = json_incref(value_at(p));
    char key[300];
    (void)snprintf(key, sizeof key, "%.256s", other->key != NULL ? other->key : "x");
    if (p->key == NULL || ev_pcg_below(rng, 2) == 0) {
        set(p, value);
        return;
    }
    (void)json_object_del(p->owner, p->key);
    (void)json_object_set_new(p->owner, key, value);
}

static void tweak(const place *p, ev_pcg *rng) {
    json_t *value = value_at(p);
    if (json_is_integer(value))
        set(p, json_integer(
                   (json_int_t)((uint64_t)json_integer_value(value) + ev_pcg_below(rng, 5) - 2)));
    else if (json_is_real(value))
        set(p, json_real(json_real_value(value) * (ev_pcg_below(rng, 2) ? 2 : -1)));
    else if (json_is_string(value))
        set(p, expression(rng));
    else
        set(p, interesting(rng));
}

void bundle_mutate_json(json_t *root, ev_pcg *rng) {
    static places room; /* one thread fuzzes */
    places *p = &room;
    p->count = 0;
    list(root, p);
    if (p->count > 0) {
        const place *at = &p->all[ev_pcg_below(rng, (uint32_t)p->count)];
        const place *other = &p->all[ev_pcg_below(rng, (uint32_t)p->count)];
        switch (ev_pcg_below(rng, 12)) {
        case 0:
            (void)(at->key != NULL ? json_object_del(at->owner, at->key)
                                   : json_array_remove(at->owner, at->index));
            break;
        case 1:
            repeat(at, rng);
            break;
        case 2:
            wrap(at, rng);
            break;
        case 3:
            set(at, json_deep_copy(value_at(other)));
            break;
        case 4:
            rename_key(at, rng, other);
            break;
        case 5:
        case 6:
        case 7:
            set(at, interesting(rng));
            break;
        default:
            tweak(at, rng);
        }
    }
}
