/* Reads what PTX asks of a driver, and evaluates launch rules at the cases of a manifest. */
#include "bundle/needs.h"

#include "bundle/bundle.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- the head of a PTX ---- */

typedef struct cursor {
    const char *at, *end;
} cursor;

static bool begins(const cursor *c, const char *word) {
    size_t length = strlen(word);
    return (size_t)(c->end - c->at) >= length && memcmp(c->at, word, length) == 0;
}

static void skip_until(cursor *c, const char *mark) {
    while (c->at < c->end && !begins(c, mark))
        c->at++;
    if (c->at < c->end)
        c->at += strlen(mark);
}

/* Blanks and comments. */
static void skip_blanks(cursor *c) {
    for (;;) {
        while (c->at < c->end && isspace((unsigned char)*c->at))
            c->at++;
        if (begins(c, "//"))
            skip_until(c, "\n");
        else if (begins(c, "/*"))
            skip_until(c, "*/");
        else
            return;
    }
}

static bool is_word(char c) {
    return isalnum((unsigned char)c) || c == '_' || c == '.';
}

/* The word behind a directive; false: another directive, or a word that does not fit. */
static bool read_directive(cursor *c, const char *directive, char *out, size_t room) {
    size_t length = 0;
    skip_blanks(c);
    if (!begins(c, directive))
        return false;
    c->at += strlen(directive);
    skip_blanks(c);
    while (c->at < c->end && is_word(*c->at)) {
        if (length + 1 == room)
            return false;
        out[length++] = *c->at++;
    }
    out[length] = '\0';
    return length > 0;
}

needs_head needs_of_ptx(const char *ptx, size_t bytes) {
    needs_head head = {0};
    char version[8] = "";
    cursor c = {ptx, ptx + bytes};
    if (!read_directive(&c, ".version", version, sizeof version) ||
        !needs_version(version, &head.version) ||
        !read_directive(&c, ".target", head.target, sizeof head.target))
        return (needs_head){0};
    return head;
}

bool needs_version(const char *text, int *out) {
    int major = 0;
    size_t digits = strspn(text, "0123456789");
    if (digits == 0 || digits > 2 || text[digits] != '.' ||
        !isdigit((unsigned char)text[digits + 1]) || text[digits + 2] != '\0')
        return false;
    for (size_t i = 0; i < digits; i++)
        major = major * 10 + (text[i] - '0');
    *out = major * 10 + (text[digits + 1] - '0');
    return true;
}

int needs_target(const char *text) {
    int number = 0;
    if (strncmp(text, "sm_", 3) != 0)
        return 0;
    const char *at = text + 3;
    for (; isdigit((unsigned char)*at) && number < 1000; at++)
        number = number * 10 + (*at - '0');
    if (*at == 'a' || *at == 'f')
        at++;
    return *at == '\0' ? number : 0;
}

/* ---- launches at the cases ---- */

#define MOST_NAMES 256

/* The names that a scheduler's expressions see, by the manifest alone. */
typedef struct scope_room {
    expr_scope scope;
    expr_name names[MOST_NAMES + 1]; /* and the counter of a loop */
} scope_room;

static ev_status add_name(scope_room *s, const char *name, expr_value value, ev_error *err) {
    if (s->scope.count == MOST_NAMES)
        return ev_fail(err, EV_BAD, "there are more than %d names", MOST_NAMES);
    s->names[s->scope.count++] = (expr_name){name, value};
    return EV_OK;
}

static expr_value value_of(const bundle_number *n) {
    return n->is_real ? expr_of_real(n->value) : expr_of_whole((int64_t)n->value);
}

static ev_status fill_scope(const bundle_kernel *k, const bundle_variant *v, const bundle_case *c,
                            scope_room *out, ev_error *err) {
    out->scope = (expr_scope){.names = out->names};
    for (size_t i = 0; i < c->shape_count; i++)
        EV_TRY(add_name(out, c->shape[i].name, value_of(&c->shape[i]), err));
    for (size_t i = 0; i < k->argument_count; i++) {
        const bundle_argument *a = &k->arguments[i];
        expr_value value;
        if (!bundle_is_scalar(a) || expr_scope_find(&out->scope, a->name) != NULL)
            continue;
        EV_TRY(expr_eval(a->expression, &out->scope, &value, err));
        EV_TRY(add_name(out, a->name, value, err));
    }
    for (size_t i = 0; i < v->macro_count; i++)
        EV_TRY(add_name(out, v->macros[i].name, value_of(&v->macros[i]), err));
    return EV_OK;
}

ev_status bundle_launches_at(const bundle_kernel *k, const bundle_variant *v, const bundle_case *c,
                             launch_geometry **out, size_t *count, ev_error *err) {
    scope_room room;
    launch_step *steps = NULL;
    EV_TRY(fill_scope(k, v, c, &room, err));
    EV_TRY(launch_plan_steps(v->plan, &room.scope, &steps, count, err));
    launch_geometry *all = calloc(*count, sizeof *all);
    ev_status status = all != NULL ? EV_OK : ev_fail_memory(err, *count * sizeof *all);
    for (size_t i = 0; i < *count && status == EV_OK; i++) {
        const expr_scope values = launch_step_scope(&steps[i], room.names, room.scope.count);
        status = launch_plan_geometry(v->plan, steps[i].launch, &values, &LAUNCH_LIMITS_CUDA,
                                      &all[i], err);
    }
    free(steps);
    if (status == EV_OK)
        *out = all;
    else
        free(all);
    return status;
}

uint32_t needs_shared(const bundle_kernel *k, const bundle_variant *v) {
    uint32_t most = 0;
    for (size_t i = 0; i < v->case_count; i++) {
        launch_geometry *all = NULL;
        size_t count = 0;
        if (bundle_launches_at(k, v, &v->cases[i], &all, &count, NULL) != EV_OK)
            continue;
        for (size_t at = 0; at < count; at++)
            most = all[at].shared_bytes > most ? all[at].shared_bytes : most;
        free(all);
    }
    return most;
}
