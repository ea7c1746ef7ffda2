/* Times on the device cuda:N.
 *
 * A batch of launches is queued behind a kernel that waits for the host, so that the host's own
 * pace is in none of them; each stands between two events of its own. Before each cold one the L2
 * is written over, outside of what is timed; warm ones find the caches as the one before left them.
 * A batch during which the clock dropped or was held back is thrown away. Batches go on until the
 * interval of the median is narrow. Buffers that kernels update are put back before each launch. */
#include "fitness/cuda/cuda.h"

#include "base/proc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 12 /* the first is not counted */
#define SAMPLES_LEAST 10
#define SAMPLES_MOST 60
#define DISCARDED_MOST 40
/* Wide enough to go on: the interval over the median. */
#define SPREAD 0.01
#define CLOCK_DROP 0.95

typedef struct sampling {
    cuda_device *c;
    const device_kernel *kernel;
    const device_launch *launch;
    CUevent begin[BATCH], end[BATCH];
    uint32_t batch; /* launches queued at once: as many as the watchdog's time takes */
    double ns[SAMPLES_MOST];
    uint32_t count, discarded;
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

static CUresult queue_one(const sampling *s, uint32_t i, bool cold) {
    const cuda_device *c = s->c;
    CUresult result = put_back(c);
    if (result == CUDA_SUCCESS && cold)
        result = c->cu.cuMemsetD8Async(c->flush, (unsigned char)i, c->flush_bytes, c->stream);
    if (result == CUDA_SUCCESS)
        result = c->cu.cuEventRecord(s->begin[i], c->stream);
    if (result == CUDA_SUCCESS)
        result = cuda_launch(c, s->kernel, s->launch);
    return result == CUDA_SUCCESS ? c->cu.cuEventRecord(s->end[i], c->stream) : result;
}

static CUresult run_batch(const sampling *s, bool cold) {
    cuda_device *c = s->c;
    void *params[] = {&c->flag_seen};
    *c->flag = 0;
    CUresult result = c->cu.cuLaunchKernel(c->spin, 1, 1, 1, 1, 1, 1, 0, c->stream, params, NULL);
    for (uint32_t i = 0; i < s->batch && result == CUDA_SUCCESS; i++)
        result = queue_one(s, i, cold);
    *c->flag = 1; /* whatever happened */
    return result == CUDA_SUCCESS ? cuda_wait(c) : result;
}

/* The first of a batch is a warm-up: instruction caches, and the caches of warm samples. */
static CUresult read_batch(sampling *s) {
    for (uint32_t i = 1; i < s->batch && s->count < SAMPLES_MOST; i++) {
        float ms = 0;
        CUresult result = s->c->cu.cuEventElapsedTime(&ms, s->begin[i], s->end[i]);
        if (result != CUDA_SUCCESS)
            return result;
        s->ns[s->count++] = (double)ms * 1e6;
    }
    return CUDA_SUCCESS;
}

/* Whether the clock was lower than it can be. */
static bool clock_dropped(cuda_device *c) {
    unsigned now = nvml_sm_clock(c->clocks);
    if (now > c->best_clock)
        c->best_clock = now;
    return now < CLOCK_DROP * c->best_clock || nvml_is_throttled(c->clocks);
}

/* ---- enough of them ---- */

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* The median, and its interval from the order of the samples: ranks n/2 -+ 0.98 sqrt(n), the
 * binomial's 95 %. */
static void summarise(sampling *s, double *median, double *low, double *high) {
    uint32_t n = s->count;
    qsort(s->ns, n, sizeof *s->ns, compare);
    *median = n % 2 ? s->ns[n / 2] : (s->ns[n / 2 - 1] + s->ns[n / 2]) / 2;
    double half = 0.98 * sqrt(n);
    double from = floor(n / 2.0 - half), to = ceil(n / 2.0 + half);
    *low = s->ns[from < 0 ? 0 : (uint32_t)from];
    *high = s->ns[to > n - 1 ? n - 1 : (uint32_t)to];
}

static CUresult sample(sampling *s, bool cold, double *median, double *low, double *high) {
    s->count = 0;
    for (;;) {
        CUresult result = run_batch(s, cold);
        if (result != CUDA_SUCCESS)
            return result;
        if (clock_dropped(s->c) && s->discarded < DISCARDED_MOST) {
            s->discarded += s->batch - 1;
            continue;
        }
        result = read_batch(s);
        if (result != CUDA_SUCCESS)
            return result;
        summarise(s, median, low, high);
        bool enough = s->count >= SAMPLES_LEAST && *high - *low <= SPREAD * *median;
        if (s->c->base.properties.modelled) /* all samples are the same */
            return CUDA_SUCCESS;
        if (enough || s->count >= SAMPLES_MOST)
            return CUDA_SUCCESS;
    }
}

/* ---- setting up ---- */

static CUresult prepare(sampling *s) {
    cuda_device *c = s->c;
    CUresult result = CUDA_SUCCESS;
    if (c->flush == 0)
        result = c->cu.cuMemAlloc_v2(&c->flush, c->flush_bytes);
    for (size_t i = 0; i < c->count && result == CUDA_SUCCESS; i++)
        result = keep_one(c, &c->buffers[i]);
    for (size_t i = 0; i < BATCH && result == CUDA_SUCCESS; i++) {
        result = c->cu.cuEventCreate(&s->begin[i], 0);
        if (result == CUDA_SUCCESS)
            result = c->cu.cuEventCreate(&s->end[i], 0);
    }
    return result;
}

static void tidy(sampling *s) {
    cuda_device *c = s->c;
    if (c->dead)
        return;
    for (size_t i = 0; i < BATCH; i++) {
        if (s->begin[i] != NULL)
            (void)c->cu.cuEventDestroy_v2(s->begin[i]);
        if (s->end[i] != NULL)
            (void)c->cu.cuEventDestroy_v2(s->end[i]);
    }
    drop_kept(c);
}

/* Cold, then warm. */
static CUresult take_times(sampling *s, device_timing *t) {
    double low = 0, high = 0;
    memset(t, 0, sizeof *t);
    CUresult result = prepare(s);
    if (result == CUDA_SUCCESS)
        result = sample(s, true, &t->ns, &t->low_ns, &t->high_ns);
    t->samples = s->count;
    if (result == CUDA_SUCCESS)
        result = sample(s, false, &t->warm_ns, &low, &high);
    t->discarded = s->discarded;
    return result;
}

/* The queue of a batch has to end within the watchdog's time; on the stand-in, whose samples are
 * all the same, within a fraction of a second. `seconds`: of one run. */
static uint32_t batch_for(const cuda_device *c, double seconds) {
    double most = c->base.properties.modelled ? 0.1 : c->watchdog / 4;
    return (uint32_t)fmin(BATCH, fmax(2, most / fmax(1e-6, seconds)));
}

ev_status cuda_time(device *d, const device_kernel *k, const device_launch *l, device_outcome *out,
                    device_timing *timing, ev_error *err) {
    cuda_device *c = cuda_of(d);
    /* Once alone: a kernel that fails is not given to a queue. */
    double begin = ev_clock_now();
    EV_TRY(cuda_run(d, k, l, out, err));
    if (!out->ok)
        return EV_OK;
    uint32_t batch = batch_for(c, ev_clock_now() - begin);
    sampling *s = calloc(1, sizeof *s);
    if (s == NULL)
        return ev_fail_memory(err, sizeof *s);
    *s = (sampling){.c = c, .kernel = k, .launch = l, .batch = batch};
    CUresult result = take_times(s, timing);
    if (result == CUDA_SUCCESS)
        tidy(s);
    free(s);
    EV_TRY(cuda_judge(c, k, result, out, err));
    if (!out->ok)
        return EV_OK;
    /* What the caller reads is the work of one launch after the last sample. */
    EV_TRY(cuda_renew_contents(c, err));
    return cuda_run(d, k, l, out, err);
}
