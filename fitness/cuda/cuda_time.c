/* Times on the device cuda:N.
 *
 * A batch of launches is queued behind a kernel that waits for the host, so that the host's own
 * pace is in none of them; each stands between two events of its own. Before each cold one the L2
 * is written over, outside of what is timed; warm ones find the caches as the one before left them.
 * A rival's launches stand between those of the launch that is timed, so that a change of the clock
 * or of the load meets both. A batch during which the clock dropped or was held back is thrown
 * away: the management library tells, and stamps that the GPU leaves before and after the batch
 * (cuda_clock.c); so are earlier ones, where a later one shows that the clock can be higher. Where
 * it stays low, what it gives is better than nothing: the count of samples thrown away and the
 * clock are told with the times. Batches go on until the interval of each median is narrow. Buffers
 * that kernels update are put back before each launch. */
#include "fitness/cuda/cuda.h"

#include "base/proc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 12 /* launches of each; the first is not counted */
#define SAMPLES_LEAST 10
#define SAMPLES_MOST 60
#define DISCARDED_MOST 40
/* Wide enough to go on: the interval over the median. */
#define SPREAD 0.01
/* Modelled times that are all the same say no more when there are ten of them. */
#define SPREAD_NONE 1e-4

/* One launch's samples. */
typedef struct series {
    const device_kernel *kernel;
    const device_launch *launch;
    CUevent begin[BATCH], end[BATCH];
    double ns[SAMPLES_MOST];
    uint32_t count;
    double median, low, high;
} series;

typedef struct sampling {
    cuda_device *c;
    series of[2]; /* the launch, and its rival */
    uint32_t series_count;
    uint32_t batch; /* launches of each queued at once: as many as the watchdog's time takes */
    uint32_t discarded;
    double mhz[SAMPLES_MOST];       /* of the batches that count, by stamps */
    uint32_t mhz_count, mhz_before; /* of these, taken for the times before */
} sampling;

/* ---- what is put back ---- */

static CUresult keep_one(const cuda_device *c, cuda_buffer *b) {
    if (b->kind != VM_BUFFER_INOUT || b->keep != 0 || b->bytes == 0)
        return CUDA_SUCCESS;
    CUresult result = c->cu.cuMemAlloc_v2(&b->keep, b->bytes);
    return result == CUDA_SUCCESS ? c->cu.cuMemcpyHtoD_v2(b->keep, b->before, b->bytes) : result;
}

static CUresult put_back(const cuda_device *c) {
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < c->count && result == CUDA_SUCCESS; i++) {
        const cuda_buffer *b = &c->buffers[i];
        if (b->keep != 0)
            result = c->cu.cuMemcpyDtoDAsync_v2(b->base + CUDA_CANARY_BYTES, b->keep, b->bytes,
                                                c->stream);
    }
    return result;
}

static void drop_kept(cuda_device *c) {
    for (size_t i = 0; i < c->count; i++) {
        if (c->buffers[i].keep != 0 && !c->dead)
            (void)c->cu.cuMemFree_v2(c->buffers[i].keep);
        c->buffers[i].keep = 0;
    }
}

/* ---- one batch ---- */

static CUresult queue_one(const cuda_device *c, const series *s, uint32_t i, bool cold) {
    CUresult result = put_back(c);
    if (result == CUDA_SUCCESS && cold)
        result = c->cu.cuMemsetD8Async(c->flush, (unsigned char)i, c->flush_bytes, c->stream);
    if (result == CUDA_SUCCESS)
        result = c->cu.cuEventRecord(s->begin[i], c->stream);
    if (result == CUDA_SUCCESS)
        result = cuda_launch(c, s->kernel, s->launch);
    return result == CUDA_SUCCESS ? c->cu.cuEventRecord(s->end[i], c->stream) : result;
}

/* In turns, and now the one first, now the other: who comes after whom is the same for both. */
static CUresult queue_all(const sampling *s, bool cold) {
    CUresult result = cuda_leave_stamps(s->c, 0);
    for (uint32_t i = 0; i < s->batch; i++) {
        for (uint32_t k = 0; k < s->series_count && result == CUDA_SUCCESS; k++)
            result = queue_one(s->c, &s->of[(i + k) % s->series_count], i, cold);
    }
    return result == CUDA_SUCCESS ? cuda_leave_stamps(s->c, 1) : result;
}

static CUresult run_batch(const sampling *s, bool cold) {
    cuda_device *c = s->c;
    CUresult result = cuda_hold(c);
    if (result == CUDA_SUCCESS)
        result = queue_all(s, cold);
    cuda_let_go(c); /* whatever happened */
    return result == CUDA_SUCCESS ? cuda_wait(c) : result;
}

/* The first of a batch is a warm-up: instruction caches, and the caches of warm samples. */
static CUresult read_series(const sampling *s, series *of) {
    for (uint32_t i = 1; i < s->batch && of->count < SAMPLES_MOST; i++) {
        float ms = 0;
        CUresult result = s->c->cu.cuEventElapsedTime(&ms, of->begin[i], of->end[i]);
        if (result != CUDA_SUCCESS)
            return result;
        of->ns[of->count++] = (double)ms * 1e6;
    }
    return CUDA_SUCCESS;
}

/* Whether the clock was lower than it can be; *mhz by the stamps, 0: not known. */
static CUresult look_at_clock(cuda_device *c, double *mhz, bool *dropped) {
    bool low = cuda_clock_dropped(nvml_sm_clock(c->clocks), &c->best_clock);
    CUresult result = cuda_stamped_mhz(c, mhz);
    bool stamped_low = cuda_clock_dropped(*mhz, &c->best_stamped);
    *dropped = low || stamped_low || nvml_is_throttled(c->clocks);
    return result;
}

/* ---- enough of them ---- */

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median_of(double *values, uint32_t n) {
    if (n == 0)
        return 0;
    qsort(values, n, sizeof *values, compare);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/* The median, and its interval from the order of the samples: ranks n/2 -+ 0.98 sqrt(n), the
 * binomial's 95 %. */
static void summarise(series *s) {
    uint32_t n = s->count;
    s->median = median_of(s->ns, n);
    double half = 0.98 * sqrt(n);
    double from = floor(n / 2.0 - half), to = ceil(n / 2.0 + half);
    s->low = s->ns[from < 0 ? 0 : (uint32_t)from];
    s->high = s->ns[to > n - 1 ? n - 1 : (uint32_t)to];
}

static bool is_enough(const series *s, bool modelled) {
    double spread = s->high - s->low;
    bool stable = s->count >= SAMPLES_LEAST && spread <= SPREAD * s->median;
    bool alike = s->count >= 2 && spread <= SPREAD_NONE * s->median; /* one has no spread */
    return stable || s->count >= SAMPLES_MOST || (modelled && alike);
}

/* Samples that count so far, at a clock that has turned out to be low. */
static void forget_low(sampling *s) {
    double low = INFINITY;
    for (uint32_t i = s->mhz_before; i < s->mhz_count; i++)
        low = fmin(low, s->mhz[i]);
    if (low == INFINITY || !cuda_clock_dropped(low, &s->c->best_stamped))
        return;
    s->discarded += s->of[0].count;
    s->mhz_count = s->mhz_before;
    for (uint32_t k = 0; k < s->series_count; k++)
        s->of[k].count = 0;
}

static CUresult take_batch(sampling *s, bool cold, bool *taken) {
    bool dropped = false;
    double mhz = 0;
    CUresult result = run_batch(s, cold);
    if (result == CUDA_SUCCESS)
        result = look_at_clock(s->c, &mhz, &dropped);
    *taken = !dropped || s->discarded >= DISCARDED_MOST;
    if (result != CUDA_SUCCESS || !*taken) {
        s->discarded += s->batch - 1;
        return result;
    }
    if (!dropped && s->discarded < DISCARDED_MOST)
        forget_low(s);
    if (mhz > 0 && s->mhz_count < SAMPLES_MOST)
        s->mhz[s->mhz_count++] = mhz;
    for (uint32_t k = 0; k < s->series_count && result == CUDA_SUCCESS; k++) {
        result = read_series(s, &s->of[k]);
        if (result == CUDA_SUCCESS)
            summarise(&s->of[k]);
    }
    return result;
}

static CUresult sample(sampling *s, bool cold) {
    for (uint32_t k = 0; k < s->series_count; k++)
        s->of[k].count = 0;
    s->mhz_before = s->mhz_count;
    for (bool enough = false; !enough;) {
        bool taken = false;
        CUresult result = take_batch(s, cold, &taken);
        if (result != CUDA_SUCCESS)
            return result;
        enough = taken;
        for (uint32_t k = 0; k < s->series_count; k++)
            enough = enough && is_enough(&s->of[k], s->c->base.properties.modelled);
    }
    return CUDA_SUCCESS;
}

/* ---- setting up ---- */

static CUresult make_events(const cuda_device *c, series *s) {
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < BATCH && result == CUDA_SUCCESS; i++) {
        result = c->cu.cuEventCreate(&s->begin[i], 0);
        if (result == CUDA_SUCCESS)
            result = c->cu.cuEventCreate(&s->end[i], 0);
    }
    return result;
}

static CUresult prepare(sampling *s) {
    cuda_device *c = s->c;
    CUresult result = CUDA_SUCCESS;
    if (c->flush == 0)
        result = c->cu.cuMemAlloc_v2(&c->flush, c->flush_bytes);
    for (size_t i = 0; i < c->count && result == CUDA_SUCCESS; i++)
        result = keep_one(c, &c->buffers[i]);
    for (uint32_t k = 0; k < s->series_count && result == CUDA_SUCCESS; k++)
        result = make_events(c, &s->of[k]);
    return result;
}

static void tidy(sampling *s) {
    cuda_device *c = s->c;
    if (c->dead)
        return;
    for (size_t i = 0; i < BATCH; i++) {
        for (uint32_t k = 0; k < 2; k++) {
            if (s->of[k].begin[i] != NULL)
                (void)c->cu.cuEventDestroy_v2(s->of[k].begin[i]);
            if (s->of[k].end[i] != NULL)
                (void)c->cu.cuEventDestroy_v2(s->of[k].end[i]);
        }
    }
    drop_kept(c);
}

static void note(const series *s, device_timing *t) {
    t->ns = s->median;
    t->low_ns = s->low;
    t->high_ns = s->high;
    t->samples = s->count;
}

/* Cold ones with the rival, then warm ones of the launch alone. */
static CUresult take_times(sampling *s, device_timing *t, device_rival *rival) {
    CUresult result = sample(s, true);
    note(&s->of[0], t);
    if (rival != NULL)
        note(&s->of[1], &rival->timing);
    t->sm_mhz = median_of(s->mhz, s->mhz_count);
    s->series_count = 1;
    if (result == CUDA_SUCCESS)
        result = sample(s, false);
    t->warm_ns = s->of[0].median;
    t->discarded = s->discarded;
    return result;
}

/* The queue of a batch has to end within the watchdog's time; on the stand-in, whose samples are
 * mostly the same, within a fraction of a second, and two samples each in any case: in the second
 * the two stand the other way round. `seconds`: of one run of each. */
static uint32_t batch_for(const cuda_device *c, double seconds) {
    double most = c->base.properties.modelled ? 0.1 : c->watchdog / 4;
    return (uint32_t)fmin(BATCH, fmax(3, most / fmax(1e-6, seconds)));
}

/* ---- once alone: a kernel that fails is not given to a queue ---- */

static ev_status run_rival(device *d, const device_rival *rival, device_outcome *out,
                           ev_error *err) {
    EV_TRY(cuda_renew_contents(cuda_of(d), err));
    EV_TRY(cuda_run(d, rival->kernel, rival->launch, out, err));
    if (out->ok)
        return EV_OK;
    return ev_fail(err, EV_INFRA,
                   "%s: what the launch is timed against ran before, and fails now: %s",
                   d->properties.id, out->fault.message);
}

/* Memory that only timing needs is no fault of the kernel's, and the context is whole. */
static ev_status fail_room(sampling *s, ev_error *err) {
    tidy(s);
    return ev_fail(err, EV_INFRA,
                   "%s has no memory left for timing: %llu bytes to flush the L2, and a copy of "
                   "each buffer that is updated",
                   s->c->base.properties.id, (unsigned long long)s->c->flush_bytes);
}

static ev_status time_all(device *d, sampling *s, device_rival *rival, device_outcome *out,
                          device_timing *timing, ev_error *err) {
    CUresult result = prepare(s);
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
        return fail_room(s, err);
    if (result == CUDA_SUCCESS)
        result = take_times(s, timing, rival);
    if (result == CUDA_SUCCESS)
        tidy(s);
    const device_kernel *k = s->of[0].kernel;
    EV_TRY(cuda_judge(s->c, k, result, out, err));
    if (!out->ok)
        return EV_OK;
    /* What the caller reads is the work of one launch after the last sample. */
    EV_TRY(cuda_renew_contents(s->c, err));
    return cuda_run(d, k, s->of[0].launch, out, err);
}

ev_status cuda_time(device *d, const device_kernel *k, const device_launch *l, device_rival *rival,
                    device_outcome *out, device_timing *timing, ev_error *err) {
    cuda_device *c = cuda_of(d);
    double begin = ev_clock_now();
    memset(timing, 0, sizeof *timing);
    EV_TRY(cuda_run(d, k, l, out, err));
    if (!out->ok)
        return EV_OK;
    if (rival != NULL)
        EV_TRY(run_rival(d, rival, out, err));
    uint32_t batch = batch_for(c, ev_clock_now() - begin);
    sampling *s = calloc(1, sizeof *s);
    if (s == NULL)
        return ev_fail_memory(err, sizeof *s);
    *s = (sampling){.c = c, .of = {{.kernel = k, .launch = l}}, .series_count = 1, .batch = batch};
    if (rival != NULL)
        s->of[s->series_count++] = (series){.kernel = rival->kernel, .launch = rival->launch};
    ev_status status = time_all(d, s, rival, out, timing, err);
    free(s);
    return status;
}
