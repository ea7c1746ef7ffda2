/* The lines of a profiled kernel, PTX and source, by what warps waited there. */
#include "tuner/cli/profile.h"

#include "base/file.h"

#include <stdlib.h>
#include <string.h>

#define LEAST_REASON 0.1 /* of a line's stall cycles */

/* Most stalled first; among equals most executed, then by line. */
static int compare_lines(const void *a, const void *b) {
    const profile_line *x = a, *y = b;
    if (x->stall != y->stall)
        return x->stall > y->stall ? -1 : 1;
    if (x->executions != y->executions)
        return x->executions > y->executions ? -1 : 1;
    return x->line < y->line ? -1 : x->line > y->line;
}

static void add_site(profile_line *to, const model_site *from, uint64_t executions) {
    to->executions += executions;
    for (int i = 0; i < MODEL_TERM_COUNT; i++) {
        to->stall += from->stall[i];
        to->site.stall[i] += from->stall[i];
    }
    to->site.requests += from->requests;
    to->site.lanes += from->lanes;
    to->site.sectors += from->sectors;
    to->site.passes += from->passes;
}

/* The place of a line among those gathered, at its end if it is new. */
static profile_line *line_at(profile_lines *lines, uint32_t line) {
    for (size_t i = lines->count; i-- > 0;)
        if (lines->list[i].line == line)
            return &lines->list[i];
    lines->list[lines->count].line = line;
    return &lines->list[lines->count++];
}

static ev_status gather(const profile *p, bool of_source, profile_lines *out, ev_error *err) {
    size_t insns = vm_module_insn_count(p->module);
    *out = (profile_lines){.list = calloc(insns + 1, sizeof *out->list)};
    if (out->list == NULL)
        return ev_fail_memory(err, insns * sizeof *out->list);
    for (size_t pc = 0; pc < insns; pc++) {
        vm_insn_info info;
        vm_module_info(p->module, (uint32_t)pc, &info);
        uint32_t line = of_source ? info.source_line : info.line;
        if (p->executions[pc] == 0 || line == 0)
            continue;
        profile_line *at = line_at(out, line);
        at->source = info.source_line;
        add_site(at, &p->sites[pc], p->executions[pc]);
    }
    qsort(out->list, out->count, sizeof *out->list, compare_lines);
    return EV_OK;
}

static void cut(profile_lines *lines, size_t most) {
    lines->count = lines->count < most ? lines->count : most;
}

/* Without the blanks around it, and without tabs. */
static char *trimmed(const char *text, size_t bytes) {
    while (bytes > 0 && strchr(" \t\r", text[bytes - 1]) != NULL)
        bytes--;
    while (bytes > 0 && (*text == ' ' || *text == '\t')) {
        text++;
        bytes--;
    }
    char *made = strndup(text, bytes);
    for (char *at = made; at != NULL && *at != '\0'; at++)
        *at = *at == '\t' ? ' ' : *at;
    return made;
}

static void add_ptx(const profile *p, profile_lines *out) {
    for (size_t i = 0; i < out->count; i++) {
        size_t bytes = 0;
        const char *text = vm_module_line(p->module, out->list[i].line, &bytes);
        out->list[i].text = text != NULL ? trimmed(text, bytes) : NULL;
    }
}

ev_status profile_ptx_lines(const profile *p, size_t most, profile_lines *out, ev_error *err) {
    EV_TRY(gather(p, false, out, err));
    cut(out, most);
    add_ptx(p, out);
    return EV_OK;
}

/* Blocks that repeat another were executed, but their accesses not counted: as many as there. */
uint64_t profile_traffic(const profile_line *line) {
    const model_site *s = &line->site;
    uint64_t moved = s->sectors > 0 ? s->sectors : s->passes;
    double each = s->requests > 0 ? (double)moved / (double)s->requests : 0;
    return (uint64_t)(each * (double)line->executions + 0.5);
}

static int compare_traffic(const void *a, const void *b) {
    const profile_line *x = a, *y = b;
    uint64_t i = profile_traffic(x), k = profile_traffic(y);
    if (i != k)
        return i > k ? -1 : 1;
    return x->line < y->line ? -1 : x->line > y->line;
}

ev_status profile_access_lines(const profile *p, size_t most, double *all, profile_lines *out,
                               ev_error *err) {
    EV_TRY(gather(p, false, out, err));
    size_t count = 0;
    *all = 0;
    for (size_t i = 0; i < out->count; i++) {
        *all += (double)profile_traffic(&out->list[i]);
        if (out->list[i].site.requests > 0)
            out->list[count++] = out->list[i];
    }
    out->count = count;
    qsort(out->list, out->count, sizeof *out->list, compare_traffic);
    cut(out, most);
    add_ptx(p, out);
    return EV_OK;
}

/* Line `number`, from 1, of a text. */
static char *nth_line(const char *text, uint32_t number) {
    for (; number > 1 && text != NULL; number--) {
        text = strchr(text, '\n');
        text = text != NULL ? text + 1 : NULL;
    }
    return text != NULL ? trimmed(text, strcspn(text, "\n")) : NULL;
}

ev_status profile_source_lines(const profile *p, size_t most, profile_lines *out, ev_error *err) {
    EV_TRY(gather(p, true, out, err));
    cut(out, most);
    char *text = NULL;
    size_t bytes = 0;
    ev_error ignored = {.text = ""};
    if (p->source == NULL || ev_file_read(p->source, &text, &bytes, &ignored) != EV_OK)
        return EV_OK; /* the numbers alone */
    for (size_t i = 0; i < out->count; i++)
        out->list[i].text = nth_line(text, out->list[i].line);
    free(text);
    return EV_OK;
}

double profile_conflicts(const profile *p) {
    double all = 0, more = 0;
    for (size_t pc = 0; pc < vm_module_insn_count(p->module); pc++) {
        const model_site *site = &p->sites[pc];
        vm_insn_info info;
        if (site->requests == 0 || site->sectors > 0)
            continue;
        vm_module_info(p->module, (uint32_t)pc, &info);
        double each = (double)p->executions[pc] / (double)site->requests;
        double least = info.access_bytes > 4 ? info.access_bytes / 4.0 : 1;
        double passes = (double)site->passes, wanted = least * (double)site->requests;
        all += each * passes;
        more += passes > wanted ? each * (passes - wanted) : 0;
    }
    return all > 0 ? more / all : 0;
}

void profile_lines_free(profile_lines *lines) {
    for (size_t i = 0; i < lines->count; i++)
        free(lines->list[i].text);
    free(lines->list);
    *lines = (profile_lines){0};
}

size_t profile_reasons(const profile_line *line, size_t most, model_term *terms) {
    size_t count = 0;
    const double *stall = line->site.stall;
    for (int i = 0; i < MODEL_TERM_COUNT; i++) {
        if (!(stall[i] > 0) || stall[i] < LEAST_REASON * line->stall)
            continue;
        size_t at = count;
        while (at > 0 && stall[terms[at - 1]] < stall[i])
            at--;
        if (at == most)
            continue;
        count += count < most;
        memmove(terms + at + 1, terms + at, (count - at - 1) * sizeof *terms);
        terms[at] = (model_term)i;
    }
    return count;
}
