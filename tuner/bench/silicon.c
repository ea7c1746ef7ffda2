/* Silicon: reads measurements of real GPUs and compares the modelled values with them. */
#include "tuner/bench/silicon.h"

#include "base/file.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define FIELDS 5

static const struct {
    const char *name, *header;
    const char *kernels[7];
} sets[] = {
    [SILICON_STREAM] = {"stream",
                        "gpu,kernel,threads_per_block,blocks_per_sm,gb_per_s",
                        {"init", "read", "scale", "triad", "stencil3", "stencil5", NULL}},
    [SILICON_STRIDES] = {"strides",
                         "gpu,type,pattern,parameter,cycles_per_warp_load",
                         {"float", "double", NULL}},
};

#define SET_COUNT (sizeof sets / sizeof sets[0])

const char *silicon_set_name(silicon_set set) {
    return sets[set].name;
}

/* Where in which file a line stands, for messages. */
typedef struct place {
    const char *path;
    size_t line;
} place;

/* ---- one line ---- */

/* Cuts a line at its commas, in place; returns how many fields there are. */
static size_t cut(char *line, char *fields[FIELDS + 1]) {
    size_t count = 0;
    for (char *at = line; at != NULL && count <= FIELDS;) {
        char *comma = strchr(at, ',');
        if (comma != NULL)
            *comma = '\0';
        fields[count++] = at;
        at = comma == NULL ? NULL : comma + 1;
    }
    return count;
}

static ev_status read_number(const place *p, const char *field, const char *what, double low,
                             double high, double *out, ev_error *err) {
    char *end = NULL;
    *out = strtod(field, &end);
    if (end == field || *end != '\0' || !isfinite(*out) || *out < low || *out > high)
        return ev_fail(err, EV_BAD, "%s:%zu: '%s' is no %s; expected a number from %g to %g",
                       p->path, p->line, field, what, low, high);
    return EV_OK;
}

static ev_status read_count(const place *p, const char *field, const char *what, double low,
                            double high, uint32_t *out, ev_error *err) {
    double value = 0;
    EV_TRY(read_number(p, field, what, low, high, &value, err));
    if (value != floor(value))
        return ev_fail(err, EV_BAD, "%s:%zu: '%s' is no %s; expected a whole number", p->path,
                       p->line, field, what);
    *out = (uint32_t)value;
    return EV_OK;
}

static ev_status read_kernel(const place *p, silicon_set set, const char *field, char *out,
                             ev_error *err) {
    const char *known = sets[set].kernels[0];
    for (size_t i = 0; known != NULL && strcmp(known, field) != 0;)
        known = sets[set].kernels[++i];
    if (known == NULL)
        return ev_fail(err, EV_BAD, "%s:%zu: there is no %s '%s'; there are %s", p->path, p->line,
                       set == SILICON_STREAM ? "kernel" : "type", field,
                       set == SILICON_STREAM ? "init, read, scale, triad, stencil3 and stencil5"
                                             : "float and double");
    memcpy(out, known, strlen(known) + 1);
    return EV_OK;
}

static ev_status read_stream(const place *p, char *const fields[], silicon_point *out,
                             ev_error *err) {
    EV_TRY(read_count(p, fields[2], "threads of a block", 1, 1024, &out->threads, err));
    EV_TRY(read_count(p, fields[3], "blocks of an SM", 1, 256, &out->blocks, err));
    return read_number(p, fields[4], "bandwidth in GB/s", 1e-3, 1e6, &out->measured, err);
}

static ev_status read_strides(const place *p, char *const fields[], silicon_point *out,
                              ev_error *err) {
    if (strcmp(fields[2], "stride") != 0)
        return ev_fail(err, EV_BAD, "%s:%zu: there is no pattern '%s'; there is 'stride'", p->path,
                       p->line, fields[2]);
    EV_TRY(read_count(p, fields[3], "stride", 0, 4096, &out->stride, err));
    return read_number(p, fields[4], "cycles of a load", 1e-3, 1e6, &out->measured, err);
}

static ev_status read_point(const place *p, silicon_set set, char *line, silicon_point *out,
                            ev_error *err) {
    char *fields[FIELDS + 1];
    size_t count = cut(line, fields);
    if (count != FIELDS)
        return ev_fail(err, EV_BAD, "%s:%zu: %zu fields; expected the %d of '%s'", p->path, p->line,
                       count, FIELDS, sets[set].header);
    *out = (silicon_point){.line = (uint32_t)p->line};
    size_t length = strlen(fields[0]);
    if (length == 0 || length >= sizeof out->gpu)
        return ev_fail(err, EV_BAD, "%s:%zu: '%s' is no name of a GPU; give 1 to %zu letters",
                       p->path, p->line, fields[0], sizeof out->gpu - 1);
    memcpy(out->gpu, fields[0], length);
    EV_TRY(read_kernel(p, set, fields[1], out->kernel, err));
    return set == SILICON_STREAM ? read_stream(p, fields, out, err)
                                 : read_strides(p, fields, out, err);
}

/* ---- the file ---- */

static char *next_line(char **at) {
    char *line = *at;
    if (*line == '\0')
        return NULL;
    size_t length = strcspn(line, "\n");
    *at = line + length + (line[length] == '\n');
    if (length > 0 && line[length - 1] == '\r')
        length--;
    line[length] = '\0';
    return line;
}

static ev_status find_set(const char *path, const char *header, silicon_set *out, ev_error *err) {
    for (size_t i = 0; header != NULL && i < SET_COUNT; i++) {
        if (strcmp(header, sets[i].header) == 0) {
            *out = (silicon_set)i;
            return EV_OK;
        }
    }
    return ev_fail(err, EV_BAD, "%s:1: the first line is neither '%s' nor '%s'", path,
                   sets[0].header, sets[1].header);
}

static ev_status read_lines(const char *path, char *text, silicon_data *out, ev_error *err) {
    char *at = text;
    EV_TRY(find_set(path, next_line(&at), &out->set, err));
    place p = {path, 1};
    for (char *line = next_line(&at); line != NULL; line = next_line(&at)) {
        p.line++;
        if (line[0] != '\0')
            EV_TRY(read_point(&p, out->set, line, &out->points[out->count++], err));
    }
    return out->count > 0 ? EV_OK : ev_fail(err, EV_BAD, "%s: no line after the first", path);
}

static size_t count_lines(const char *text) {
    size_t lines = 1;
    for (; *text != '\0'; text++)
        lines += *text == '\n';
    return lines;
}

ev_status silicon_read(const char *path, silicon_data *out, ev_error *err) {
    char *text = NULL;
    size_t bytes = 0;
    *out = (silicon_data){0};
    EV_TRY(ev_file_read(path, &text, &bytes, err));
    ev_status status = EV_OK;
    out->points = calloc(count_lines(text), sizeof *out->points);
    if (strlen(text) != bytes)
        status = ev_fail(err, EV_BAD, "%s: has a zero byte; expected a CSV file", path);
    else if (out->points == NULL)
        status = ev_fail_memory(err, bytes);
    else
        status = read_lines(path, text, out, err);
    free(text);
    if (status != EV_OK)
        silicon_free(out);
    return status;
}

void silicon_free(silicon_data *data) {
    free(data->points);
    *data = (silicon_data){0};
}

/* ---- comparing ---- */

double silicon_mape(const silicon_point *points, size_t count) {
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += fabs(points[i].modelled / points[i].measured - 1);
    return count > 0 ? 100 * sum / (double)count : 0;
}

/* Twice the mean rank of points[i] among all, minus the least possible: counts those below twice
 * and those alike once. */
static double rank_of(const silicon_point *points, size_t count, size_t i, bool modelled) {
    double value = modelled ? points[i].modelled : points[i].measured, rank = 0;
    for (size_t k = 0; k < count; k++) {
        double other = modelled ? points[k].modelled : points[k].measured;
        if (other < value)
            rank += 2;
        else if (other == value)
            rank += 1;
    }
    return rank;
}

double silicon_spearman(const silicon_point *points, size_t count) {
    double mean = (double)count, xy = 0, xx = 0, yy = 0; /* all ranks sum up to count squared */
    for (size_t i = 0; i < count; i++) {
        double x = rank_of(points, count, i, false) - mean;
        double y = rank_of(points, count, i, true) - mean;
        xy += x * y;
        xx += x * x;
        yy += y * y;
    }
    return xx > 0 && yy > 0 ? xy / sqrt(xx * yy) : 0;
}

static int order_of(double a, double b, double apart) {
    if (fabs(a - b) <= apart * fmin(a, b))
        return 0;
    return a > b ? 1 : -1;
}

double silicon_kendall(const silicon_point *points, size_t count, double apart) {
    double agreed = 0, measured = 0, modelled = 0;
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < i; k++) {
            int x = order_of(points[i].measured, points[k].measured, apart);
            int y = order_of(points[i].modelled, points[k].modelled, 0);
            agreed += x * y;
            measured += x != 0;
            modelled += y != 0;
        }
    }
    return measured > 0 && modelled > 0 ? agreed / sqrt(measured * modelled) : 0;
}
