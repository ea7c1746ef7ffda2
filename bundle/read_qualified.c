/* Reads what evoke qualify left in a manifest; numbers and words that cannot be are refused. */
#include "bundle/read.h"

#include "bundle/manifest.h"

#include <string.h>

static ev_status read_word(const reading *r, const json_t *object, const char *where,
                           const char *key, const char *const *words, size_t count, size_t *out) {
    const char *text = ev_json_text(object, key, "");
    for (size_t i = 0; i < count; i++) {
        if (strcmp(words[i], text) == 0) {
            *out = i;
            return EV_OK;
        }
    }
    return ev_json_fail(r->doc, reading_join(r, where, key), r->err, "there is no %s '%s'", key,
                        text);
}

static ev_status read_verdict(const reading *r, const json_t *object, const char *where,
                              bundle_verdict *out) {
    const char *words[BUNDLE_VERDICT_COUNT];
    size_t found = 0;
    for (size_t i = 0; i < BUNDLE_VERDICT_COUNT; i++)
        words[i] = bundle_verdict_name((bundle_verdict)i);
    EV_TRY(read_word(r, object, where, "verdict", words, BUNDLE_VERDICT_COUNT, &found));
    *out = (bundle_verdict)found;
    return EV_OK;
}

/* A time that is there is above 0, and lies in its interval. */
static ev_status read_time(const reading *r, const json_t *trial, const char *where,
                           const char *key, bundle_time *out) {
    const json_t *object = json_object_get(trial, key);
    if (object == NULL)
        return EV_OK;
    const char *place = reading_join(r, where, key);
    EV_TRY(manifest_check(r->doc, MANIFEST_TIME, object, place, r->err));
    *out = (bundle_time){ev_json_number(object, "ns", 0), ev_json_number(object, "low_ns", 0),
                         ev_json_number(object, "high_ns", 0)};
    if (!(out->low_ns > 0 && out->low_ns <= out->ns && out->ns <= out->high_ns))
        return ev_json_fail(r->doc, place, r->err,
                            "0 < low_ns <= ns <= high_ns must hold; it has %g, %g and %g",
                            out->low_ns, out->ns, out->high_ns);
    return EV_OK;
}

static ev_status read_trial(const reading *r, const json_t *object, const char *where,
                            bundle_trial *out) {
    EV_TRY(manifest_check(r->doc, MANIFEST_TRIAL, object, where, r->err));
    out->name = ev_json_text(object, "case", "");
    out->error = ev_json_number(object, "error", -1);
    out->start_name = ev_json_text(object, "start_name", NULL);
    if (out->error < 0 && json_object_get(object, "error") != NULL)
        return ev_json_fail(r->doc, reading_join(r, where, "error"), r->err,
                            "an error is not below 0");
    EV_TRY(read_verdict(r, object, where, &out->verdict));
    EV_TRY(read_time(r, object, where, "variant", &out->variant));
    EV_TRY(read_time(r, object, where, "baseline", &out->baseline));
    EV_TRY(read_time(r, object, where, "beside_start", &out->beside_start));
    EV_TRY(read_time(r, object, where, "start", &out->start));
    bool has_start = out->start_name != NULL;
    if ((out->start.ns > 0) != has_start || (out->beside_start.ns > 0) != has_start)
        return ev_json_fail(r->doc, where, r->err,
                            "'start', 'beside_start' and 'start_name' go together");
    if ((out->variant.ns > 0) != (out->baseline.ns > 0))
        return ev_json_fail(r->doc, where, r->err, "'variant' and 'baseline' go together");
    return EV_OK;
}

static ev_status read_trials(const reading *r, const json_t *object, const char *where,
                             bundle_qualified *out) {
    const json_t *array = json_object_get(object, "cases");
    if (json_array_size(array) > MOST_CASES)
        return ev_json_fail(r->doc, reading_join(r, where, "cases"), r->err,
                            "a variant has at most %d cases", MOST_CASES);
    bundle_trial *all = EV_NEW_ARRAY(r->arena, bundle_trial, json_array_size(array) + 1);
    if (all == NULL)
        return ev_fail_memory(r->err, json_array_size(array) * sizeof *all);
    out->trials = all;
    for (size_t i = 0; i < json_array_size(array); i++, out->trial_count++)
        EV_TRY(
            read_trial(r, json_array_get(array, i), reading_member(r, where, "cases", i), &all[i]));
    return EV_OK;
}

ev_status reading_gpu(const reading *r, const json_t *object, const char *where, const char **id,
                      const char **name, int *sm, int *sms) {
    const json_t *gpu = json_object_get(object, "gpu");
    const char *place = reading_join(r, where, "gpu");
    EV_TRY(manifest_check(r->doc, MANIFEST_GPU, gpu, place, r->err));
    json_int_t capability = ev_json_integer(gpu, "sm", 0), count = ev_json_integer(gpu, "sms", 0);
    if (capability < 0 || capability > 9999)
        return ev_json_fail(r->doc, reading_join(r, place, "sm"), r->err,
                            "a compute capability x 10 is from 0 to 9999");
    if (count < 0 || count > 99999)
        return ev_json_fail(r->doc, reading_join(r, place, "sms"), r->err,
                            "a GPU has from 1 to 99999 multiprocessors; 0: not known");
    double mhz = ev_json_number(gpu, "sm_mhz", 1);
    if (!(mhz > 0 && mhz < 100000))
        return ev_json_fail(r->doc, reading_join(r, place, "sm_mhz"), r->err,
                            "a clock is above 0 and below 100000 MHz");
    *id = ev_json_text(gpu, "id", "");
    *name = ev_json_text(gpu, "name", "");
    *sm = (int)capability;
    *sms = (int)count;
    return EV_OK;
}

static ev_status read_one(const reading *r, const json_t *object, const char *where,
                          bundle_qualified *out) {
    static const char *const kinds[] = {"modelled", "measured"};
    size_t kind = 0;
    EV_TRY(manifest_check(r->doc, MANIFEST_QUALIFIED, object, where, r->err));
    EV_TRY(reading_gpu(r, object, where, &out->gpu_id, &out->gpu_name, &out->sm, &out->sms));
    EV_TRY(reading_driver_names(r, object, where, &out->driver_names, &out->driver_name_count));
    EV_TRY(read_word(r, object, where, "time_kind", kinds, 2, &kind));
    EV_TRY(read_verdict(r, object, where, &out->verdict));
    out->driver = ev_json_text(object, "driver", "");
    out->modelled = kind == 0;
    out->reason = ev_json_text(object, "reason", "");
    if ((out->verdict == BUNDLE_VERDICT_PASS) != (out->reason[0] == '\0'))
        return ev_json_fail(r->doc, where, r->err,
                            "the verdict 'pass' has no 'reason', and any other has one");
    return read_trials(r, object, where, out);
}

ev_status reading_qualified(const reading *r, const json_t *variant, const char *where,
                            bundle_variant *out) {
    const json_t *array = json_object_get(variant, "qualified");
    bundle_qualified *all = EV_NEW_ARRAY(r->arena, bundle_qualified, json_array_size(array) + 1);
    if (all == NULL)
        return ev_fail_memory(r->err, json_array_size(array) * sizeof *all);
    out->qualified = all;
    for (size_t i = 0; i < json_array_size(array); i++, out->qualified_count++)
        EV_TRY(read_one(r, json_array_get(array, i), reading_member(r, where, "qualified", i),
                        &all[i]));
    out->disabled = ev_json_text(variant, "disabled", NULL);
    if (out->disabled != NULL && out->disabled[0] == '\0')
        return ev_json_fail(r->doc, reading_join(r, where, "disabled"), r->err,
                            "say why the variant is disabled, or leave the key out");
    return EV_OK;
}
