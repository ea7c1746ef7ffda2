/* Times on the device cuda:N.
 *
 * What is timed is a sequence of launches, most often of one; below, "launch" means all of them. A
 * sequence stands between two events as a whole, so the gaps between its launches count.
 *
 * A batch of launches is queued behind a kernel that waits for the host, so that the host's own
 * pace is in none of them (cuda_hold.c); each stands between two events of its own. Before each
 * cold one the L2 is written over, outside of what is timed; warm ones find the caches as the one
 * before left them, and where they are short, several stand between two events, which tell half a
 * microsecond apart. Cold ones can't: each needs a flush of its own.
 * A rival's launches stand between those of the launch that is timed, so that a change of the clock
 * or of the load meets both. A batch during which the clock dropped or was held back is thrown
 * away: the management library tells, and stamps that the GPU leaves before and after the batch
 * (cuda_clock.c); so are earlier ones, where a later one shows that the clock can be higher. Where
 * it stays low, what it gives is better than nothing: the count of samples thrown away and the
 * clock are told with the times. Batches go on until the interval of each median is narrow. Buffers
 * that kernels update are put back before each launch.
 *
 * A queue has room for a few hundred commands. Sequences so long that the smallest batch has more
 * are queued at the host's pace: the GPU is behind the host, which launches faster than most
 * kernels end. */
#include "fitness/device/cuda/cuda.h"

#include "base/proc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 12       /* samples of each; the first is not counted */
#define BATCH_MOST 100 /* where that is too short for the timer */
#define BATCH_LEAST 3  /* in the second and third, who stands first differs */
#define QUEUE_MOST 512 /* of commands in a batch: half of what drivers are known to queue */
#define OWN_COMMANDS 8 /* the hold, the stamps, the last event */
/* Between two events, where the launch may be repeated: two hundred times what they resolve. */
#define SPAN_NS 100e3
#define REPEAT_MOST 100
#define GRAINS_LEAST 250 /* steps of the timer in a batch (cuda_clock.c wants 200) */
#define SAMPLES_LEAST 10
#define DISCARDED_MOST 40
/* Wide enough to go on: the interval over the median. */
#define SPREAD 0.01
/* Modelled times that are all the same say no more when there are ten of them. */
#define SPREAD_NONE 1e-4

/* One sequence's samples. */
typedef struct series {
    const device_sequence *what;
    CUevent begin[BATCH_MOST], end[BATCH_MOST];
    double ns[CUDA_SAMPLES_MOST];
    uint32_t count;
    double median, low, high;
} series;

typedef struct sampling {
    cuda_device *c;
    series of[2]; /* the launch, and its rival */
    uint32_t series_count;
    uint32_t launches; /* of each that the watchdog's time takes */
    uint32_t batch;    /* samples of each queued at once */
    uint32_t repeat;   /* launches of a sample */
    bool holds;        /* the batch fits the queue, and waits there for the host */
    uint32_t discarded;
    double mhz[CUDA_SAMPLES_MOST];  /* of the batches that count, by stamps */
    uint32_t mhz_count, mhz_before; /* of these, taken for the times before */
} sampling;

/* ---- what is put back ---- */

static CUresult keep_one(const cuda_device *c, cuda_buffer *b) {
    if (b->kind != VM_BUFFER_INOUT || b->keep != 0 || b->bytes == 0)
        return CUDA_SUCCESS;
    CUresult result = c->cu.cuMemAlloc_v2(&b->keep, b->bytes);
    return result == CUDA_SUCCESS ? c->cu.cuMemcpyHtoD_v2(b->keep, b->before, b->bytes) : result;
}

CUresult cuda_keep(cuda_device *c) {
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < c->count && result == CUDA_SUCCESS; i++)
        result = keep_one(c, &c->buffers[i]);
    return result;
}

CUresult cuda_put_back(const cuda_device *c) {
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < c->count && result == CUDA_SUCCESS; i++) {
        const cuda_buffer *b = &c->buffers[i];
        if (b->keep != 0)
            result = c->cu.cuMemcpyDtoDAsync_v2(b->base + CUDA_CANARY_BYTES, b->keep, b->bytes,
                                                c->stream);
    }
    return result;
}

void cuda_drop_kept(cuda_device *c) {
    for (size_t i = 0; i < c->count; i++) {
        if (c->buffers[i].keep != 0 && !c->dead)
            (void)c->cu.cuMemFree_v2(c->buffers[i].keep);
        c->buffers[i].keep = 0;
    }
}

/* ---- how many ---- */

static uint32_t count_kept(const cuda_device *c) {
    uint32_t count = 0;
    for (size_t i = 0; i < c->count; i++)
        count += c->buffers[i].keep != 0;
    return count;
}

/* Samples of each series that a queue has room for. */
static size_t room_of(const sampling *s, bool cold) {
    size_t commands = 0;
    for (uint32_t k = 0; k < s->series_count; k++)
        commands += count_kept(s->c) + cold + 2 + (size_t)s->repeat * s->of[k].what->count;
    return commands > 0 ? (QUEUE_MOST - OWN_COMMANDS) / commands : 0;
}

static uint32_t clamp(uint32_t value, uint32_t least, uint32_t most) {
    if (value < least)
        return least;
    return value > most ? most : value;
}

/* The next whole number, where it is in that range. */
static uint32_t between(double value, uint32_t least, uint32_t most) {
    return (uint32_t)fmin(most, fmax(least, ceil(value)));
}

/* A sample of about `ns` nanoseconds a launch; 0: not known. A launch that updates buffers finds
 * other contents the second time, so it is not repeated; batches of short ones are longer. */
static void plan(sampling *s, bool cold, double ns) {
    uint32_t kept = count_kept(s->c);
    s->repeat = 1;
    s->batch = BATCH;
    if (!cold && ns > 0 && kept == 0)
        s->repeat = between(SPAN_NS / ns, 1, REPEAT_MOST);
    else if (!cold && ns > 0 && s->c->timer_grain < SPAN_NS)
        s->batch = between(GRAINS_LEAST * s->c->timer_grain / ns, BATCH, BATCH_MOST);
    s->repeat = clamp(s->launches / BATCH_LEAST, 1, s->repeat);
    s->batch = clamp(s->launches / s->repeat, BATCH_LEAST, s->batch);
    size_t room = room_of(s, cold);
    if (room < BATCH_LEAST) { /* fewer to a sample, then */
        s->repeat = 1;
        room = room_of(s, cold);
    }
    s->holds = room >= BATCH_LEAST;
    s->batch = clamp((uint32_t)room, BATCH_LEAST, s->batch);
}

/* ---- one batch ---- */

/* Those that the batch needs and earlier ones didn't. */
static CUresult make_events(const sampling *s, series *of) {
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < s->batch && result == CUDA_SUCCESS; i++) {
        if (of->begin[i] == NULL)
            result = s->c->cu.cuEventCreate(&of->begin[i], 0);
        if (result == CUDA_SUCCESS && of->end[i] == NULL)
            result = s->c->cu.cuEventCreate(&of->end[i], 0);
    }
    return result;
}

static CUresult launch_all(const cuda_device *c, const device_sequence *what) {
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < what->count && result == CUDA_SUCCESS; i++)
        result = cuda_launch(c, what->kernels[i], &what->launches[i]);
    return result;
}

static CUresult queue_one(const sampling *of, const series *s, uint32_t i, bool cold) {
    const cuda_device *c = of->c;
    CUresult result = cuda_put_back(c);
    if (result == CUDA_SUCCESS && cold)
        result = c->cu.cuMemsetD8Async(c->flush, (unsigned char)i, c->flush_bytes, c->stream);
    if (result == CUDA_SUCCESS)
        result = c->cu.cuEventRecord(s->begin[i], c->stream);
    for (uint32_t k = 0; k < of->repeat && result == CUDA_SUCCESS; k++)
        result = launch_all(c, s->what);
    return result == CUDA_SUCCESS ? c->cu.cuEventRecord(s->end[i], c->stream) : result;
}

/* In turns, and now the one first, now the other: who comes after whom is the same for both. */
static CUresult queue_all(const sampling *s, bool cold) {
    CUresult result = cuda_leave_stamps(s->c, 0);
    for (uint32_t i = 0; i < s->batch; i++) {
        for (uint32_t k = 0; k < s->series_count && result == CUDA_SUCCESS; k++)
            result = queue_one(s, &s->of[(i + k) % s->series_count], i, cold);
    }
    return result == CUDA_SUCCESS ? cuda_leave_stamps(s->c, 1) : result;
}

static CUresult run_batch(sampling *s, bool cold, bool *broken) {
    cuda_device *c = s->c;
    CUresult result = CUDA_SUCCESS;
    for (uint32_t k = 0; k < s->series_count && result == CUDA_SUCCESS; k++)
        result = make_events(s, &s->of[k]);
    if (result == CUDA_SUCCESS && s->holds)
        result = cuda_hold(c);
    if (result == CUDA_SUCCESS)
        result = queue_all(s, cold);
    *broken = cuda_let_go(c); /* whatever happened */
    return result == CUDA_SUCCESS ? cuda_wait(c) : result;
}

/* The first of a batch is a warm-up: instruction caches, and the caches of warm samples. */
static CUresult read_series(const sampling *s, series *of) {
    for (uint32_t i = 1; i < s->batch && of->count < CUDA_SAMPLES_MOST; i++) {
        float ms = 0;
        CUresult result = s->c->cu.cuEventElapsedTime(&ms, of->begin[i], of->end[i]);
        if (result != CUDA_SUCCESS)
            return result;
        of->ns[of->count++] = (double)ms * 1e6 / s->repeat;
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

double cuda_median(double *ns, uint32_t n, double *low, double *high) {
    double median = median_of(ns, n);
    double half = 0.98 * sqrt(n);
    double from = floor(n / 2.0 - half), to = ceil(n / 2.0 + half);
    *low = ns[from < 0 ? 0 : (uint32_t)from];
    *high = ns[to > n - 1 ? n - 1 : (uint32_t)to];
    return median;
}

static void summarise(series *s) {
    s->median = cuda_median(s->ns, s->count, &s->low, &s->high);
}

bool cuda_is_enough(uint32_t count, double median, double spread, bool modelled) {
    bool stable = count >= SAMPLES_LEAST && spread <= SPREAD * median;
    bool alike = count >= 2 && spread <= SPREAD_NONE * median; /* one has no spread */
    return stable || count >= CUDA_SAMPLES_MOST || (modelled && alike);
}

static bool is_enough(const series *s, bool modelled) {
    return cuda_is_enough(s->count, s->median, s->high - s->low, modelled);
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
    bool dropped = false, broken = false;
    double mhz = 0;
    CUresult result = run_batch(s, cold, &broken);
    if (result == CUDA_SUCCESS)
        result = look_at_clock(s->c, &mhz, &dropped);
    *taken = !broken && (!dropped || s->discarded >= DISCARDED_MOST);
    if (result != CUDA_SUCCESS || !*taken) {
        s->discarded += broken ? 0 : s->batch - 1;
        return result;
    }
    if (!dropped && s->discarded < DISCARDED_MOST)
        forget_low(s);
    if (mhz > 0 && s->mhz_count < CUDA_SAMPLES_MOST)
        s->mhz[s->mhz_count++] = mhz;
    for (uint32_t k = 0; k < s->series_count && result == CUDA_SUCCESS; k++) {
        result = read_series(s, &s->of[k]);
        if (result == CUDA_SUCCESS)
            summarise(&s->of[k]);
    }
    return result;
}

/* Warm launches may be much shorter than the cold ones that the plan was made by. */
static bool plan_again(sampling *s) {
    uint32_t repeat = s->repeat, batch = s->batch;
    plan(s, false, s->of[0].median);
    return s->repeat > repeat || (s->repeat == repeat && s->batch > batch);
}

/* `ns`: of a launch, by what is known before. */
static CUresult sample(sampling *s, bool cold, double ns) {
    for (uint32_t k = 0; k < s->series_count; k++)
        s->of[k].count = 0;
    s->mhz_before = s->mhz_count;
    plan(s, cold, ns);
    for (bool enough = false, planned = cold; !enough;) {
        bool taken = false;
        CUresult result = take_batch(s, cold, &taken);
        if (result != CUDA_SUCCESS)
            return result;
        if (taken && !planned) {
            planned = true;
            if (plan_again(s)) {
                s->of[0].count = 0;
                continue;
            }
        }
        enough = taken;
        for (uint32_t k = 0; k < s->series_count; k++)
            enough = enough && is_enough(&s->of[k], s->c->base.properties.modelled);
    }
    return CUDA_SUCCESS;
}

/* ---- setting up ---- */

static CUresult prepare(sampling *s) {
    cuda_device *c = s->c;
    CUresult result = CUDA_SUCCESS;
    if (c->flush == 0)
        result = c->cu.cuMemAlloc_v2(&c->flush, c->flush_bytes);
    if (result == CUDA_SUCCESS)
        result = cuda_keep(c);
    /* the kernels ran already; what else is queued runs once before a stream is held */
    if (result == CUDA_SUCCESS)
        result = cuda_put_back(c);
    return result == CUDA_SUCCESS ? cuda_warm_own(c) : result;
}

static void tidy(sampling *s) {
    cuda_device *c = s->c;
    if (c->dead)
        return;
    for (size_t i = 0; i < BATCH_MOST; i++) {
        for (uint32_t k = 0; k < 2; k++) {
            if (s->of[k].begin[i] != NULL)
                (void)c->cu.cuEventDestroy_v2(s->of[k].begin[i]);
            if (s->of[k].end[i] != NULL)
                (void)c->cu.cuEventDestroy_v2(s->of[k].end[i]);
        }
    }
    cuda_drop_kept(c);
}

static void note(const series *s, device_timing *t) {
    t->ns = s->median;
    t->low_ns = s->low;
    t->high_ns = s->high;
    t->samples = s->count;
}

/* Cold ones with the rival, then warm ones of the launch alone. */
static CUresult take_times(sampling *s, device_timing *t, device_rival *rival) {
    CUresult result = sample(s, true, 0);
    note(&s->of[0], t);
    if (rival != NULL)
        note(&s->of[1], &rival->timing);
    s->series_count = 1;
    if (result == CUDA_SUCCESS)
        result = sample(s, false, t->ns);
    t->warm_ns = s->of[0].median;
    t->sm_mhz = median_of(s->mhz, s->mhz_count);
    t->discarded = s->discarded;
    return result;
}

/* The queue of a batch has to end within the watchdog's time; on the stand-in, whose samples are
 * mostly the same, within a fraction of a second. `seconds`: of one run of each. */
static uint32_t launches_for(const cuda_device *c, double seconds) {
    double most = c->base.properties.modelled ? 0.1 : c->watchdog / 4;
    return between(most / fmax(1e-6, seconds), 1, BATCH * REPEAT_MOST);
}

/* ---- once alone: a kernel that fails is not given to a queue ---- */

static ev_status run_rival(device *d, const device_rival *rival, device_outcome *out,
                           ev_error *err) {
    EV_TRY(cuda_renew_contents(cuda_of(d), err));
    ev_status status = cuda_run_sequence(d, &rival->what, out, err);
    out->launch = DEVICE_ANY_LAUNCH; /* the rival's is none of the caller's */
    EV_TRY(status);
    if (out->ok)
        return EV_OK;
    return ev_fail(err, EV_INFRA, "%s: the rival of the timed launch ran before and fails now: %s",
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
    ev_status status = cuda_judge(s->c, s->of[0].what->kernels[0], result, out, err);
    out->launch = DEVICE_ANY_LAUNCH;
    if (status != EV_OK || !out->ok)
        return status;
    /* What the caller reads is the work of one launch after the last sample. */
    EV_TRY(cuda_renew_contents(s->c, err));
    return cuda_run_sequence(d, s->of[0].what, out, err);
}

ev_status cuda_time_sequence(device *d, const device_sequence *what, device_rival *rival,
                             device_outcome *out, device_timing *timing, ev_error *err) {
    cuda_device *c = cuda_of(d);
    double begin = ev_clock_now();
    memset(timing, 0, sizeof *timing);
    EV_TRY(cuda_may_hold(c, err));
    EV_TRY(cuda_run_sequence(d, what, out, err));
    if (!out->ok)
        return EV_OK;
    if (rival != NULL)
        EV_TRY(run_rival(d, rival, out, err));
    uint32_t launches = launches_for(c, ev_clock_now() - begin);
    sampling *s = calloc(1, sizeof *s);
    if (s == NULL)
        return ev_fail_memory(err, sizeof *s);
    *s = (sampling){.c = c, .of = {{.what = what}}, .series_count = 1, .launches = launches};
    if (rival != NULL)
        s->of[s->series_count++] = (series){.what = &rival->what};
    ev_status status = time_all(d, s, rival, out, timing, err);
    free(s);
    return status;
}

ev_status cuda_time(device *d, const device_kernel *k, const device_launch *l, device_outcome *out,
                    device_timing *timing, ev_error *err) {
    const device_sequence one = {.kernels = &k, .launches = l, .count = 1};
    return cuda_time_sequence(d, &one, NULL, out, timing, err);
}
