/* evoke/bundle.h: resolving, and a choice in words. */
#include "bundle/runtime/runtime.h"

#include <stdio.h>
#include <string.h>

_Static_assert((unsigned)EVOKE_RUNG_EXACT == (unsigned)BUNDLE_RUNG_EXACT &&
                   (unsigned)EVOKE_RUNG_SIZE == (unsigned)BUNDLE_RUNG_SIZE &&
                   (unsigned)EVOKE_RUNG_CAPABILITY == (unsigned)BUNDLE_RUNG_CAPABILITY &&
                   (unsigned)EVOKE_RUNG_PTX == (unsigned)BUNDLE_RUNG_PTX &&
                   (unsigned)EVOKE_RUNG_BASELINE == (unsigned)BUNDLE_RUNG_BASELINE,
               "the public rungs are the inner ones");
_Static_assert((unsigned)EVOKE_ROLE_START == (unsigned)BUNDLE_ROLE_START &&
                   (unsigned)EVOKE_ROLE_BASELINE == (unsigned)BUNDLE_ROLE_BASELINE,
               "the public roles are the inner ones");

#define MOST_NUMBERS 64

static ev_status gpu_current(const cu_driver *cu, evoke_gpu *out, char name[256], ev_error *err) {
    CUcontext context = NULL;
    unsigned long long id = 0;
    CUdevice device = 0;
    int major = 0, minor = 0, count = 0;
    EV_TRY(runtime_context(cu, &context, &id, err));
    EV_TRY(runtime_check(cu, cu->cuCtxGetDevice(&device), "cuCtxGetDevice", err));
    EV_TRY(runtime_check(cu, cu->cuDeviceGetName(name, 256, device), "cuDeviceGetName", err));
    const struct {
        int which, *to;
    } numbers[] = {{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major},
                   {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor},
                   {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &count}};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        EV_TRY(runtime_check(cu, cu->cuDeviceGetAttribute(numbers[i].to, numbers[i].which, device),
                             "cuDeviceGetAttribute", err));
    *out = (evoke_gpu){name, 10 * major + minor, count};
    return EV_OK;
}

evoke_status evoke_gpu_current(evoke_gpu *out, char name[256], evoke_error *error) {
    const cu_driver *cu = NULL;
    ev_status status = runtime_driver(&cu, runtime_error(error));
    if (status == EV_OK)
        status = gpu_current(cu, out, name, runtime_error(error));
    return runtime_status(status);
}

evoke_status evoke_bundle_resolve(const evoke_bundle *b, const char *kernel, const evoke_gpu *gpu,
                                  const evoke_shape *shape, unsigned flags, evoke_choice *out,
                                  evoke_error *error) {
    bundle_number numbers[MOST_NUMBERS];
    bundle_choice made;
    if (shape->count > MOST_NUMBERS)
        return runtime_status(ev_fail(runtime_error(error), EV_BAD,
                                      "%s: a shape has at most %d numbers", kernel, MOST_NUMBERS));
    for (size_t i = 0; i < shape->count; i++)
        numbers[i] =
            (bundle_number){.name = shape->numbers[i].name, .value = shape->numbers[i].value};
    const bundle_request request = {.kernel = kernel,
                                    .gpu = gpu->name,
                                    .sm = gpu->capability,
                                    .sms = gpu->multiprocessors,
                                    .shape = numbers,
                                    .shape_count = shape->count,
                                    .only_baseline = (flags & EVOKE_BASELINE) != 0,
                                    .all_aligned = (flags & EVOKE_ALIGNED) != 0 ? 256 : 0,
                                    .allow_bold = (flags & EVOKE_ALLOW_BOLD) != 0};
    ev_status status = bundle_resolve(b->inside, &request, &made, runtime_error(error));
    if (status == EV_OK)
        *out = (evoke_choice){.variant = &b->variants[made.variant->number],
                              .rung = (evoke_rung)made.rung,
                              .role = (evoke_role)made.role,
                              .speedup = 1 / made.ratio,
                              .is_measured = !made.variant->modelled,
                              .passed_over = made.passed_over != NULL ? made.why : NULL};
    return runtime_status(status);
}

const char *evoke_rung_name(evoke_rung rung) {
    return (unsigned)rung < BUNDLE_RUNG_COUNT ? bundle_rung_name((bundle_rung)rung) : NULL;
}

const char *evoke_bundle_explain(const evoke_choice *choice, char *text, size_t room) {
    static const char *const roles[] = {"the variant of", "the unmodified start", "the baseline,"};
    const bundle_variant *v = choice->variant->is;
    char times[80] = "";
    if (choice->role != EVOKE_ROLE_BASELINE)
        (void)snprintf(times, sizeof times, ", %.2f x the baseline by %s times", choice->speedup,
                       choice->is_measured ? "measured" : "modelled");
    (void)snprintf(text, room, "%s: %s %s for %s (%s)%s%s%s", choice->variant->kernel->name,
                   roles[choice->role], v->start, v->gpu_name,
                   bundle_rung_name((bundle_rung)choice->rung), times,
                   choice->passed_over != NULL ? "; another was passed over: " : "",
                   choice->passed_over != NULL ? choice->passed_over : "");
    return text;
}

const char *evoke_variant_sha256(const evoke_variant *v) {
    return v->is->sha256.hex;
}

const char *evoke_variant_gpu(const evoke_variant *v) {
    return v->is->gpu_name;
}
