/* Times of ranks on GPUs: from the first rank's begin to the last one's end.
 *
 * Rank 0's stream has both events. The other streams wait for the first one, and rank 0's stream
 * waits for them before the second one, so the time is of one clock, whether the ranks have a GPU
 * each or a stream each. A kernel holds rank 0's stream while the host gives all launches to the
 * streams (cuda_hold.c), so that the host's pace is in no time. Before each sample the buffers that
 * kernels update are put back on all ranks, and the L2 of each GPU is written over. Samples of a
 * rival stand between those of the launch.
 *
 * Less is done than for single launches (cuda_time.c): one sample at a time, no warm times, and no
 * look at the clocks. */
#include "fitness/device/cuda/cuda_ranks.h"
#include "fitness/device/device_group.h"

#include <stdlib.h>
#include <string.h>

/* A sequence on all ranks. */
typedef struct series {
    const device_sequence *what;
    size_t launch_count, all; /* launches; of all ranks together */
    device_launch *launches;  /* by launch and rank */
    cuda_rank *ranks;         /* the same */
    double ns[CUDA_SAMPLES_MOST];
    uint32_t count;
    double median, low, high;
} series;

typedef struct sampling {
    cuda_device *members[DEVICE_GROUP_MOST];
    uint32_t count; /* of ranks */
    device *const *devices;
    series of[2]; /* the launch, and its rival */
    uint32_t series_count;
    CUevent begin, end;
    uint64_t rebuilds;
} sampling;

/* ---- the launches ---- */

static void series_free(const sampling *s, series *of) {
    if (of->ranks != NULL)
        cuda_ranks_drop_copies(of->ranks, (uint32_t)of->all, s->rebuilds);
    free(of->ranks);
    free(of->launches);
}

static ev_status series_new(const sampling *s, const device_sequence *what, series *of,
                            ev_error *err) {
    size_t all = what->count * s->count;
    *of = (series){.what = what, .launch_count = what->count, .all = all};
    of->launches = calloc(all + 1, sizeof *of->launches);
    of->ranks = calloc(all + 1, sizeof *of->ranks);
    if (of->launches == NULL || of->ranks == NULL)
        return ev_fail_memory(err, all * sizeof *of->ranks);
    for (size_t i = 0; i < all; i++) {
        const device_launch *l = &what->launches[i / s->count];
        of->launches[i] = *l;
        of->launches[i].params = l->rank_params[i % s->count];
        of->ranks[i] = (cuda_rank){.c = s->members[i % s->count],
                                   .kernel = what->kernels[i / s->count],
                                   .launch = &of->launches[i]};
    }
    return EV_OK;
}

static ev_status find_functions(series *of, ev_error *err) {
    for (size_t i = 0; i < of->all; i++)
        EV_TRY(cuda_rank_need_function(&of->ranks[i], err));
    return EV_OK;
}

/* Each launch on all ranks, up to the first with a fault. */
static ev_status run_once(const sampling *s, const series *of, device_outcome *out, ev_error *err) {
    const device_kernel *kernels[DEVICE_GROUP_MOST];
    device_outcome outcomes[DEVICE_GROUP_MOST];
    for (size_t k = 0; k < of->launch_count; k++) {
        for (uint32_t i = 0; i < s->count; i++)
            kernels[i] = of->what->kernels[k];
        ev_status status = cuda_run_ranks(s->devices, kernels, &of->launches[k * s->count],
                                          s->count, outcomes, err);
        *out = outcomes[0];
        out->launch = k;
        if (status != EV_OK || !out->ok)
            return status;
    }
    return EV_OK;
}

static ev_status renew(const sampling *s, ev_error *err) {
    for (uint32_t i = 0; i < s->count; i++) {
        EV_TRY(cuda_enter(s->members[i], err));
        EV_TRY(cuda_renew_contents(s->members[i], err));
    }
    return EV_OK;
}

static ev_status run_rival(const sampling *s, const series *of, ev_error *err) {
    device_outcome out = {0};
    EV_TRY(renew(s, err));
    EV_TRY(run_once(s, of, &out, err));
    if (out.ok)
        return EV_OK;
    return ev_fail(err, EV_INFRA, "%s: the rival of the timed launch ran before and fails now: %s",
                   s->members[0]->base.properties.id, out.fault.message);
}

/* ---- one sample ---- */

static CUresult enter(const cuda_device *c) {
    return c->cu.cuCtxSetCurrent(c->context);
}

static bool is_first_on_gpu(const sampling *s, uint32_t rank) {
    bool first = true;
    for (uint32_t i = 0; i < rank; i++)
        first = first && s->members[i]->context != s->members[rank]->context;
    return first;
}

/* Contents and caches as before each sample, on all ranks. */
static CUresult make_ready(const sampling *s, unsigned char byte) {
    CUresult result = CUDA_SUCCESS;
    for (uint32_t i = 0; i < s->count && result == CUDA_SUCCESS; i++) {
        const cuda_device *c = s->members[i];
        result = enter(c);
        if (result == CUDA_SUCCESS)
            result = cuda_put_back(c);
        if (result == CUDA_SUCCESS)
            result = c->cu.cuStreamSynchronize(c->stream);
    }
    for (uint32_t i = 0; i < s->count && result == CUDA_SUCCESS; i++) {
        const cuda_device *c = s->members[i];
        if (!is_first_on_gpu(s, i))
            continue;
        result = enter(c);
        if (result == CUDA_SUCCESS)
            result = c->cu.cuMemsetD8Async(c->flush, byte, c->flush_bytes, c->stream);
        if (result == CUDA_SUCCESS)
            result = c->cu.cuCtxSynchronize();
    }
    return result;
}

/* The other streams begin when rank 0's has the first event. */
static CUresult begin_all(const sampling *s) {
    const cuda_device *first = s->members[0];
    CUresult result = first->cu.cuEventRecord(s->begin, first->stream);
    for (uint32_t i = 1; i < s->count && result == CUDA_SUCCESS; i++) {
        const cuda_device *c = s->members[i];
        result = enter(c);
        if (result == CUDA_SUCCESS)
            result = c->cu.cuStreamWaitEvent(c->stream, s->begin, 0);
    }
    return result;
}

static CUresult launch_all(const series *of) {
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < of->all && result == CUDA_SUCCESS; i++) {
        const cuda_rank *r = &of->ranks[i];
        result = enter(r->c);
        if (result == CUDA_SUCCESS)
            result = cuda_launch_function(r->c, r->function, r->kernel, r->launch);
    }
    return result;
}

static CUresult end_all(const sampling *s) {
    const cuda_device *first = s->members[0];
    CUresult result = CUDA_SUCCESS;
    for (uint32_t i = 1; i < s->count && result == CUDA_SUCCESS; i++) {
        const cuda_device *c = s->members[i];
        result = enter(c);
        if (result == CUDA_SUCCESS)
            result = c->cu.cuEventRecord(c->done, c->stream);
        if (result == CUDA_SUCCESS)
            result = enter(first);
        if (result == CUDA_SUCCESS)
            result = first->cu.cuStreamWaitEvent(first->stream, c->done, 0);
    }
    if (result == CUDA_SUCCESS)
        result = enter(first);
    return result == CUDA_SUCCESS ? first->cu.cuEventRecord(s->end, first->stream) : result;
}

static CUresult give_all(const sampling *s, const series *of) {
    CUresult result = begin_all(s);
    if (result == CUDA_SUCCESS)
        result = launch_all(of);
    return result == CUDA_SUCCESS ? end_all(s) : result;
}

/* *ns is set unless the watchdog had to let the launches go. */
static CUresult take_one(const sampling *s, const series *of, unsigned char byte, bool *broken,
                         double *ns) {
    cuda_device *first = s->members[0];
    float ms = 0;
    CUresult result = make_ready(s, byte);
    if (result == CUDA_SUCCESS)
        result = enter(first);
    if (result == CUDA_SUCCESS)
        result = cuda_hold(first);
    bool gives = result == CUDA_SUCCESS;
    if (gives)
        result = give_all(s, of);
    *broken = cuda_let_go(first); /* whatever happened */
    if (gives &&
        result != CUDA_SUCCESS) /* ranks that run may wait for ever for those that do not */
        cuda_give_up(first);
    if (result == CUDA_SUCCESS)
        result = enter(first);
    if (result == CUDA_SUCCESS)
        result = cuda_wait(first);
    if (result == CUDA_SUCCESS)
        result = first->cu.cuEventElapsedTime(&ms, s->begin, s->end);
    *ns = (double)ms * 1e6;
    return result;
}

/* ---- enough of them ---- */

static void add(series *of, double ns) {
    of->ns[of->count++] = ns;
    of->median = cuda_median(of->ns, of->count, &of->low, &of->high);
}

/* A sample of each series, now the one first, now the other; those of the first turn are not
 * counted. */
static CUresult take_turn(sampling *s, uint32_t turn) {
    CUresult result = CUDA_SUCCESS;
    double ns[2] = {0, 0};
    bool broken = false;
    for (uint32_t k = 0; k < s->series_count && result == CUDA_SUCCESS; k++) {
        uint32_t which = (turn + k) % s->series_count;
        bool was_broken = false;
        result = take_one(s, &s->of[which], (unsigned char)turn, &was_broken, &ns[which]);
        broken = broken || was_broken;
    }
    for (uint32_t k = 0; k < s->series_count && result == CUDA_SUCCESS && turn > 0 && !broken; k++)
        add(&s->of[k], ns[k]);
    return result;
}

/* Where times are modelled, they hang on the turns that the streams take, and more say no more. */
static bool is_enough(const sampling *s, const series *of) {
    bool modelled = s->members[0]->base.properties.modelled;
    return (modelled && of->count >= 2) ||
           cuda_is_enough(of->count, of->median, of->high - of->low, modelled);
}

static CUresult take_all(sampling *s) {
    bool enough = false;
    for (uint32_t turn = 0; !enough; turn++) {
        CUresult result = take_turn(s, turn);
        if (result != CUDA_SUCCESS)
            return result;
        enough = true;
        for (uint32_t k = 0; k < s->series_count; k++)
            enough = enough && is_enough(s, &s->of[k]);
    }
    return CUDA_SUCCESS;
}

/* ---- setting up ---- */

static CUresult prepare(sampling *s) {
    cuda_device *first = s->members[0];
    CUresult result = CUDA_SUCCESS;
    for (uint32_t i = 0; i < s->count && result == CUDA_SUCCESS; i++) {
        cuda_device *c = s->members[i];
        result = enter(c);
        if (result == CUDA_SUCCESS && c->flush == 0 && is_first_on_gpu(s, i))
            result = c->cu.cuMemAlloc_v2(&c->flush, c->flush_bytes);
        if (result == CUDA_SUCCESS)
            result = cuda_keep(c);
    }
    if (result == CUDA_SUCCESS)
        result = enter(first);
    if (result == CUDA_SUCCESS)
        result = cuda_warm_own(first);
    if (result == CUDA_SUCCESS)
        result = first->cu.cuEventCreate(&s->begin, 0);
    return result == CUDA_SUCCESS ? first->cu.cuEventCreate(&s->end, 0) : result;
}

static void tidy(sampling *s) {
    const cuda_device *first = s->members[0];
    for (uint32_t i = 0; i < s->count; i++) {
        if (!first->dead && enter(s->members[i]) == CUDA_SUCCESS)
            cuda_drop_kept(s->members[i]);
    }
    if (first->dead || enter(first) != CUDA_SUCCESS)
        return;
    if (s->begin != NULL)
        (void)first->cu.cuEventDestroy_v2(s->begin);
    if (s->end != NULL)
        (void)first->cu.cuEventDestroy_v2(s->end);
}

static ev_status fail_room(sampling *s, ev_error *err) {
    tidy(s);
    return ev_fail(err, EV_INFRA,
                   "%s has no memory left for timing: %llu bytes to flush the L2, and a copy of "
                   "each buffer that is updated",
                   s->members[0]->base.properties.id,
                   (unsigned long long)s->members[0]->flush_bytes);
}

static void note(const series *of, device_timing *t) {
    *t = (device_timing){
        .ns = of->median, .low_ns = of->low, .high_ns = of->high, .samples = of->count};
}

static ev_status time_all(sampling *s, device_rival *rival, device_outcome *out,
                          device_timing *timing, ev_error *err) {
    CUresult result = prepare(s);
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
        return fail_room(s, err);
    if (result == CUDA_SUCCESS)
        result = take_all(s);
    tidy(s);
    ev_status status = cuda_judge(s->members[0], s->of[0].what->kernels[0], result, out, err);
    out->launch = DEVICE_ANY_LAUNCH;
    if (status != EV_OK || !out->ok)
        return status;
    note(&s->of[0], timing);
    if (rival != NULL)
        note(&s->of[1], &rival->timing);
    /* What the caller reads is the work of one launch after the last sample. */
    EV_TRY(renew(s, err));
    return run_once(s, &s->of[0], out, err);
}

static ev_status time_series(sampling *s, device_rival *rival, device_outcome *out,
                             device_timing *timing, ev_error *err) {
    EV_TRY(run_once(s, &s->of[0], out, err));
    if (!out->ok)
        return EV_OK;
    if (rival != NULL)
        EV_TRY(run_rival(s, &s->of[1], err));
    for (uint32_t k = 0; k < s->series_count; k++)
        EV_TRY(find_functions(&s->of[k], err));
    return time_all(s, rival, out, timing, err);
}

ev_status cuda_time_ranks(device *const *devices, const device_sequence *what, device_rival *rival,
                          device_outcome *out, device_timing *timing, ev_error *err) {
    sampling *s = calloc(1, sizeof *s);
    memset(timing, 0, sizeof *timing);
    if (s == NULL)
        return ev_fail_memory(err, sizeof *s);
    *s = (sampling){.count = what->launches[0].ranks,
                    .devices = devices,
                    .rebuilds = cuda_of(devices[0])->rebuilds};
    s->members[0] = cuda_of(devices[0]);
    for (uint32_t i = 1; i < s->count; i++)
        s->members[i] = cuda_of(devices[i]);
    ev_status status = cuda_may_hold(cuda_of(devices[0]), err);
    if (status == EV_OK)
        status = series_new(s, what, &s->of[s->series_count++], err);
    if (status == EV_OK && rival != NULL)
        status = series_new(s, &rival->what, &s->of[s->series_count++], err);
    if (status == EV_OK)
        status = time_series(s, rival, out, timing, err);
    for (uint32_t k = 0; k < s->series_count; k++)
        series_free(s, &s->of[k]);
    free(s);
    return status;
}
