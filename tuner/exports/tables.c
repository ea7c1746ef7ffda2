/* Dally and Chakra: the table of layer times; for Dally also the job, whose time is scaled with the
 * table. Were the table alone to shrink, the simulator would see less communication for the same
 * compute. */
#include "tuner/exports/inside.h"
#include "tuner/exports/plan.h"

#include "base/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define NS_PER_US 1e3

/* ---- the job ---- */

/* The name of the table's model: --base without folder and ending, or else the network's. */
static const char *model_of(const plan *p) {
    const char *base = p->request->base;
    if (base == NULL)
        return p->network.name;
    const char *slash = strrchr(base, '/'), *name = slash != NULL ? slash + 1 : base;
    const char *dot = strrchr(name, '.');
    return dot != NULL && dot != name ? ev_arena_strndup(p->arena, name, (size_t)(dot - name))
                                      : name;
}

/* Scales the job if it is of the model. A whole number of time units stays whole. */
static ev_status scale_job(const plan *p, const ev_json *doc, const char *where, json_t *job,
                           const char *model, size_t *scaled, ev_error *err) {
    json_t *time = json_object_get(job, "time_per_iteration");
    const char *of = ev_json_text(job, "model", NULL);
    if (of == NULL || !json_is_number(time))
        return ev_json_fail(doc, where, err,
                            "a job has 'model' (a text) and 'time_per_iteration' (a number)");
    if (strcasecmp(of, model) != 0 && strcasecmp(of, p->network.name) != 0)
        return EV_OK;
    double now = json_number_value(time) * plan_factor(p);
    json_t *value =
        json_is_integer(time) ? json_integer((json_int_t)fmax(1, round(now))) : json_real(now);
    (*scaled)++;
    return json_object_set_new(job, "time_per_iteration", value) == 0
               ? EV_OK
               : ev_fail_memory(err, sizeof now);
}

static ev_status scale_jobs(const plan *p, const ev_json *doc, const char *model, ev_error *err) {
    size_t scaled = 0;
    json_t *root = doc->root;
    if (json_is_object(root))
        EV_TRY(scale_job(p, doc, "", root, model, &scaled, err));
    for (size_t i = 0; i < json_array_size(root); i++) {
        char where[32];
        (void)snprintf(where, sizeof where, "[%zu]", i);
        EV_TRY(scale_job(p, doc, where, json_array_get(root, i), model, &scaled, err));
    }
    if (scaled == 0)
        return ev_fail(err, EV_BAD,
                       "%s has no job whose model is '%s' or '%s'; its time is scaled "
                       "with the table's",
                       p->request->job, model, p->network.name);
    return EV_OK;
}

static ev_status make_job(const plan *p, ev_str *out, ev_error *err) {
    ev_json *doc = NULL;
    const char *model = model_of(p);
    if (model == NULL)
        return ev_fail_memory(err, ev_arena_bytes(p->arena));
    if (!(plan_factor(p) > 0))
        return ev_fail(err, EV_BAD,
                       "--job: the table has no published times, so nothing says how "
                       "the job's time changes; leave --job out");
    EV_TRY(ev_json_load(p->request->job, &doc, err));
    ev_status status = scale_jobs(p, doc, model, err);
    char *text = status == EV_OK ? ev_json_print(doc->root, false) : NULL;
    ev_json_free(doc);
    EV_TRY(status);
    if (text == NULL)
        return ev_fail_memory(err, 1);
    ev_str_printf(out, "%s\n", text);
    free(text);
    return EV_OK;
}

/* ---- the files ---- */

/* The job is made before anything is written, so that a wrong job leaves no table behind. */
static ev_status write_files(const plan *p, const char *format, double unit_ns, json_t *files,
                             ev_error *err) {
    ev_str table = EV_STR_EMPTY, job = EV_STR_EMPTY;
    const char *job_path = plan_beside(p, ".job.json");
    ev_status status = job_path != NULL ? EV_OK : ev_fail_memory(err, ev_arena_bytes(p->arena));
    if (status == EV_OK && p->request->job != NULL)
        status = make_job(p, &job, err);
    workload_print(&p->after, unit_ns, &table);
    if (status == EV_OK)
        status = exports_put(p->request->out, &table, err);
    if (status == EV_OK && p->request->job != NULL) {
        (void)json_array_append_new(files, json_string(job_path));
        status = exports_put(job_path, &job, err);
    }
    if (status == EV_OK)
        status = plan_write_notes(p, format, NULL, files, err);
    ev_str_free(&table);
    ev_str_free(&job);
    return status;
}

static ev_status write_table(const exports_request *r, const char *format, double unit_ns,
                             json_t **summary, ev_error *err) {
    plan p;
    ev_status status = plan_make(r, &p, err);
    json_t *files = json_pack("[s]", r->out);
    if (status == EV_OK)
        status = write_files(&p, format, unit_ns, files, err);
    if (status == EV_OK) {
        plan_warn(&p);
        *summary = plan_summary(&p, format, json_incref(files));
    }
    json_decref(files);
    plan_free(&p);
    return status;
}

ev_status exports_write_dally(const exports_request *r, json_t **summary, ev_error *err) {
    EV_TRY(write_table(r, "dally", 1, summary, err));
    if (r->job == NULL && ev_json_number(*summary, "factor", 1) > 0)
        exports_warn(r,
                     "no --job was given: multiply the job's time_per_iteration by %.6g, or the "
                     "simulator sees too little communication",
                     ev_json_number(*summary, "factor", 1));
    return EV_OK;
}

ev_status exports_write_chakra(const exports_request *r, json_t **summary, ev_error *err) {
    if (r->job != NULL)
        return ev_fail(err, EV_BAD,
                       "--job %s: Chakra has no job; --to dally and --to dlio have one", r->job);
    return write_table(r, "chakra", NS_PER_US, summary, err);
}
