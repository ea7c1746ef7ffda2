/* Ranking sets: reads measured times of configurations, and chooses among them. */
#include "tuner/bench/ranking_set.h"

#include "base/file.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNIT "_ms" /* ends the name of a column of times */
#define IMAGE 4096
#define PRODUCT 4096

/* ---- kernels ---- */

typedef void launch_fn(const ir_macro *macros, uint32_t grid[3], uint32_t block[3]);

static uint32_t value(const ir_macro *macros, size_t i) {
    return (uint32_t)macros[i].value;
}

static uint32_t pieces(uint32_t whole, uint32_t piece) {
    return piece > 0 ? (whole + piece - 1) / piece : 0;
}

/* By block_size_x, block_size_y, tile_size_x, tile_size_y. */
static void launch_convolution(const ir_macro *m, uint32_t grid[3], uint32_t block[3]) {
    block[0] = value(m, 0);
    block[1] = value(m, 1);
    grid[0] = pieces(IMAGE, value(m, 0) * value(m, 2));
    grid[1] = pieces(IMAGE, value(m, 1) * value(m, 3));
}

/* By MWG, NWG, KWG, MDIMC, NDIMC. */
static void launch_gemm(const ir_macro *m, uint32_t grid[3], uint32_t block[3]) {
    block[0] = value(m, 3);
    block[1] = value(m, 4);
    grid[0] = pieces(PRODUCT, value(m, 0));
    grid[1] = pieces(PRODUCT, value(m, 1));
}

static const struct {
    const char *name;
    launch_fn *launch;
    const char *macros[RANKING_MACROS_MOST + 1];
} kernels[RANKING_KERNELS] = {
    [RANKING_CONVOLUTION] = {"convolution",
                             launch_convolution,
                             {"block_size_x", "block_size_y", "tile_size_x", "tile_size_y",
                              "use_padding", "read_only"}},
    [RANKING_GEMM] = {"gemm",
                      launch_gemm,
                      {"MWG", "NWG", "KWG", "MDIMC", "NDIMC", "MDIMA", "NDIMB", "KWI", "VWM", "VWN",
                       "STRM", "STRN", "SA", "SB"}},
};

const char *ranking_kernel_name(ranking_kernel kernel) {
    return kernels[kernel].name;
}

void ranking_launch(ranking_kernel kernel, const ir_macro *macros, uint32_t grid[3],
                    uint32_t block[3]) {
    grid[2] = block[2] = 1;
    kernels[kernel].launch(macros, grid, block);
}

/* ---- reading ---- */

#define FIELDS_MOST (RANKING_MACROS_MOST + RANKING_GPUS_MOST)

/* Cuts a line at its commas, in place; returns how many fields there are, at most one too many. */
static size_t cut(char *line, char *fields[FIELDS_MOST + 1]) {
    size_t count = 0;
    for (char *at = line; at != NULL && count <= FIELDS_MOST;) {
        char *comma = strchr(at, ',');
        if (comma != NULL)
            *comma = '\0';
        fields[count++] = at;
        at = comma != NULL ? comma + 1 : NULL;
    }
    return count;
}

/* How many fields the kernel's macros take if the line begins with them; 0: it does not. */
static size_t macros_of(ranking_kernel kernel, char *const fields[], size_t count) {
    size_t i = 0;
    while (i < RANKING_MACROS_MOST && kernels[kernel].macros[i] != NULL) {
        if (i >= count || strcmp(kernels[kernel].macros[i], fields[i]) != 0)
            return 0;
        i++;
    }
    return i;
}

/* The id of a description, of "NAME_ms"; false: the column is none of times. */
static bool read_gpu(const char *field, char id[40]) {
    size_t length = strlen(field), unit = strlen(UNIT);
    if (length <= unit || length - unit >= 40 || strcmp(field + length - unit, UNIT) != 0)
        return false;
    for (size_t i = 0; i < length - unit; i++)
        id[i] = (char)(field[i] == '_' ? '-' : field[i]);
    id[length - unit] = '\0';
    return true;
}

static ev_status read_header(const char *path, char *line, ranking_set *out, ev_error *err) {
    char *fields[FIELDS_MOST + 1];
    size_t count = cut(line, fields);
    for (int k = 0; k < RANKING_KERNELS && out->macro_count == 0; k++) {
        out->kernel = (ranking_kernel)k;
        out->macro_count = macros_of(out->kernel, fields, count);
    }
    if (out->macro_count == 0)
        return ev_fail(err, EV_BAD,
                       "%s:1: the first line begins neither with the macros of 'convolution' nor "
                       "with those of 'gemm'; see fitness/model/silicon/README.md",
                       path);
    out->gpu_count = count - out->macro_count;
    if (out->gpu_count == 0 || out->gpu_count > RANKING_GPUS_MOST)
        return ev_fail(err, EV_BAD, "%s:1: %zu columns of times; expected 1 to %d", path,
                       out->gpu_count, RANKING_GPUS_MOST);
    for (size_t i = 0; i < out->gpu_count; i++) {
        if (!read_gpu(fields[out->macro_count + i], out->gpus[i]))
            return ev_fail(err, EV_BAD, "%s:1: the column '%s' is not named GPU_ms", path,
                           fields[out->macro_count + i]);
    }
    return EV_OK;
}

static ev_status read_value(const char *path, size_t line, const char *field, int64_t *out,
                            ev_error *err) {
    char *end = NULL;
    errno = 0;
    long number = strtol(field, &end, 10);
    if (end == field || *end != '\0' || errno != 0 || number < 0 || number > 4096)
        return ev_fail(err, EV_BAD, "%s:%zu: '%s' is no value of a macro; expected 0 to 4096", path,
                       line, field);
    *out = number;
    return EV_OK;
}

static ev_status read_time(const char *path, size_t line, const char *field, double *out,
                           ev_error *err) {
    char *end = NULL;
    double number = strtod(field, &end);
    *out = 0;
    if (field[0] == '\0')
        return EV_OK;
    if (end == field || *end != '\0' || !isfinite(number) || number <= 0)
        return ev_fail(err, EV_BAD, "%s:%zu: '%s' is no time in milliseconds", path, line, field);
    *out = number;
    return EV_OK;
}

static ev_status read_config(const char *path, size_t line, char *text, const ranking_set *set,
                             ranking_config *out, ev_error *err) {
    char *fields[FIELDS_MOST + 1];
    ev_str values = EV_STR_EMPTY;
    size_t count = cut(text, fields);
    if (count < set->macro_count || count - set->macro_count != set->gpu_count)
        return ev_fail(err, EV_BAD, "%s:%zu: %zu fields; expected %zu", path, line, count,
                       set->macro_count + set->gpu_count);
    for (size_t i = 0; i < set->macro_count; i++) {
        out->macros[i].name = kernels[set->kernel].macros[i];
        EV_TRY(read_value(path, line, fields[i], &out->macros[i].value, err));
    }
    for (size_t i = 0; i < set->gpu_count; i++)
        EV_TRY(read_time(path, line, fields[set->macro_count + i], &out->ms[i], err));
    for (size_t i = 0; i < set->macro_count; i++)
        ev_str_printf(&values, "%s%lld", i > 0 ? "," : "", (long long)out->macros[i].value);
    ev_status status = ev_str_status(&values, err);
    out->hash = ev_sha256_of(values.data, values.length);
    ev_str_free(&values);
    return status;
}

/* A config must make a launch: blocks of 1 to 1024 threads, and some blocks. */
static ev_status check_launch(const char *path, size_t line, const ranking_set *set,
                              const ranking_config *c, ev_error *err) {
    uint32_t grid[3], block[3];
    ranking_launch(set->kernel, c->macros, grid, block);
    uint64_t threads = (uint64_t)block[0] * block[1], blocks = (uint64_t)grid[0] * grid[1];
    return threads > 0 && threads <= 1024 && blocks > 0
               ? EV_OK
               : ev_fail(err, EV_BAD, "%s:%zu: makes a grid of %u x %u blocks of %u x %u threads",
                         path, line, grid[0], grid[1], block[0], block[1]);
}

static char *next_line(char **at) {
    char *line = *at;
    if (*line == '\0')
        return NULL;
    size_t length = strcspn(line, "\r\n");
    *at = line + length + strspn(line + length, "\r\n");
    line[length] = '\0';
    return line;
}

static ev_status read_lines(const char *path, char *text, ranking_set *out, ev_error *err) {
    char *at = text, none[1] = "";
    char *first = next_line(&at);
    EV_TRY(read_header(path, first != NULL ? first : none, out, err));
    size_t number = 1;
    for (char *line = next_line(&at); line != NULL; line = next_line(&at)) {
        ranking_config *c = &out->configs[out->count++];
        EV_TRY(read_config(path, ++number, line, out, c, err));
        EV_TRY(check_launch(path, number, out, c, err));
    }
    return out->count > 0 ? EV_OK : ev_fail(err, EV_BAD, "%s: no line after the first", path);
}

ev_status ranking_read(const char *path, ranking_set *out, ev_error *err) {
    char *text = NULL;
    size_t bytes = 0, lines = 2;
    *out = (ranking_set){0};
    EV_TRY(ev_file_read(path, &text, &bytes, err));
    for (size_t i = 0; i < bytes; i++)
        lines += text[i] == '\n';
    out->configs = calloc(lines, sizeof *out->configs);
    ev_status status = out->configs != NULL ? read_lines(path, text, out, err)
                                            : ev_fail_memory(err, lines * sizeof *out->configs);
    free(text);
    if (status != EV_OK)
        ranking_set_free(out);
    return status;
}

void ranking_set_free(ranking_set *set) {
    free(set->configs);
    *set = (ranking_set){0};
}

/* ---- choosing ---- */

static bool comes_before(const ranking_config *a, const ranking_config *b, size_t gpu,
                         bool by_time) {
    if (by_time && a->ms[gpu] != b->ms[gpu])
        return a->ms[gpu] < b->ms[gpu];
    return strcmp(a->hash.hex, b->hash.hex) < 0;
}

/* How many measured configurations come before the i-th. */
static size_t place_of(const ranking_set *set, size_t gpu, size_t i, bool by_time) {
    size_t place = 0;
    for (size_t k = 0; k < set->count; k++)
        place += set->configs[k].ms[gpu] > 0 &&
                 comes_before(&set->configs[k], &set->configs[i], gpu, by_time);
    return place;
}

size_t ranking_choose(const ranking_set *set, size_t gpu, size_t by_hash, size_t fastest,
                      size_t *chosen) {
    size_t count = 0;
    for (size_t i = 0; i < set->count; i++) {
        if (set->configs[i].ms[gpu] > 0 &&
            (place_of(set, gpu, i, false) < by_hash || place_of(set, gpu, i, true) < fastest))
            chosen[count++] = i;
    }
    return count;
}
