/* Prior: reads the odds of the arms from counts of children. */
#include "tuner/search/prior.h"

#include "base/json.h"

#include <string.h>

/* The expected share of valid ones among further children, with one of either kind assumed seen
 * (Laplace's rule of succession): 1/2 for an arm that was never drawn. */
static double odds_of(json_int_t drawn, json_int_t valid) {
    return ((double)valid + 1) / ((double)drawn + 2);
}

static ev_status read_arm(const char *path, const json_t *row, prior *out, ev_error *err) {
    const char *name = ev_json_text(row, "edit", "");
    json_int_t drawn = ev_json_integer(row, "drawn", -1);
    json_int_t valid = ev_json_integer(row, "valid", -1);
    unsigned arm = 0;
    if (!arm_find(name, &arm))
        return ev_fail(
            err, EV_BAD,
            "%s: there is no edit or operator '%s' (evoke edits lists them); make the file "
            "anew from records of this version",
            path, name);
    if (drawn < 0 || valid < 0 || valid > drawn)
        return ev_fail(
            err, EV_BAD,
            "%s: '%s' needs the counts \"drawn\" and \"valid\", valid being the smaller; "
            "make the file with evoke edits RECORDS --json",
            path, name);
    out->odds[arm] = odds_of(drawn, valid);
    return EV_OK;
}

ev_status prior_read(const char *path, prior *out, ev_error *err) {
    ev_json *doc = NULL;
    EV_TRY(ev_json_load(path, &doc, err));
    const json_t *list = json_object_get(doc->root, "edits");
    ev_status status = EV_OK;
    if (!json_is_array(list))
        status = ev_fail(err, EV_BAD,
                         "%s: a prior has a list \"edits\"; make the file with evoke edits RECORDS "
                         "--json",
                         path);
    for (unsigned arm = 0; arm < ARM_COUNT; arm++)
        out->odds[arm] = odds_of(0, 0);
    for (size_t i = 0; status == EV_OK && i < json_array_size(list); i++)
        status = read_arm(path, json_array_get(list, i), out, err);
    out->sha256 = ev_sha256_of(doc->text, strlen(doc->text));
    ev_json_free(doc);
    return status;
}
