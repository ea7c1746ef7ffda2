/* Writes the bundles that fuzz_bundle starts from: fuzz_bundle_corpus FOLDER makes FOLDER/bundle.
 */
#include "base/file.h"
#include "bundle/bundle.h"
#include "tests/bundle/sample.h"

#include <stdio.h>

static ev_status write_one(const char *folder, const char *name, const bundle_content *content,
                           ev_error *err) {
    char path[1000];
    (void)snprintf(path, sizeof path, "%s/bundle/%s.tar", folder, name);
    return bundle_write(path, content, err);
}

/* Every key of a manifest. */
static void fill_whole(sample *s, bundle_variant variants[3]) {
    static const bundle_time time = {100, 90, 110};
    static const bundle_trial trial = {
        "small", BUNDLE_VERDICT_SLOWER, time, time, time, time, "hand", 0.5};
    static const char *const names[] = {"H200", "H200 NVL"};
    static const bundle_qualified qualified = {.gpu_id = "h200",
                                               .gpu_name = "NVIDIA H200",
                                               .sm = 70,
                                               .sms = 132,
                                               .driver_names = names,
                                               .driver_name_count = 2,
                                               .driver = "13.0",
                                               .verdict = BUNDLE_VERDICT_SLOWER,
                                               .reason = "it is slower",
                                               .trials = &trial,
                                               .trial_count = 1};
    static const char *const edits[] = {"changes the meaning of a sum"};
    static const bundle_alignment alignment = {"x", 64};
    sample_fill(s);
    variants[0] = variants[1] = variants[2] = s->variant;
    variants[0].driver_names = names;
    variants[0].driver_name_count = 2;
    variants[0].qualified = &qualified;
    variants[0].qualified_count = 1;
    variants[0].alignments = &alignment;
    variants[0].alignment_count = 1;
    variants[1].is_bold = variants[1].is_default = true;
    variants[1].edits = variants[1].changes = edits;
    variants[1].edit_count = variants[1].change_count = 1;
    variants[1].tried = (bundle_tried){"vm:h200", 100, 1000, 1};
    variants[1].gpu_id = "a100";
    variants[1].sm = 80;
    variants[2].ptx = SAMPLE_BASE_PTX;
    s->kernel.variants = variants;
    s->kernel.variant_count = 2;
    s->kernel.starts = &variants[2];
    s->kernel.start_count = 1;
}

int main(int argc, char **argv) {
    ev_error err = {0};
    char folder[1000];
    sample s;
    bundle_variant variants[3];
    if (argc != 2)
        return 2;
    (void)snprintf(folder, sizeof folder, "%s/bundle", argv[1]);
    sample_fill(&s);
    ev_status status = ev_dir_make(folder, &err);
    if (status == EV_OK)
        status = write_one(argv[1], "small", &s.content, &err);
    sample_use_steps(&s);
    if (status == EV_OK)
        status = write_one(argv[1], "steps", &s.content, &err);
    sample_use_ranks(&s);
    if (status == EV_OK)
        status = write_one(argv[1], "ranks", &s.content, &err);
    fill_whole(&s, variants);
    if (status == EV_OK)
        status = write_one(argv[1], "whole", &s.content, &err);
    if (status != EV_OK)
        (void)fprintf(stderr, "%s\n", err.text);
    return status != EV_OK;
}
