/* Floor: declared work over the numbers of a GPU description. */
#include "fitness/gates/floor.h"

#include "fitness/gates/fitness_impl.h"

/* Declared bytes may be expectations, as of sectors with a random neuron. */
#define FLOOR_SLACK 0.02

static const gpu_key PEAKS[TASK_UNIT_COUNT] = {
#define UNIT(id, key, peak, words) GPU_##peak,
#include "kernels/units.def"
#undef UNIT
};

/* Operations of the whole chip in a nanosecond; 0: there is no such unit. */
static double peak_of(const gpu *g, task_unit unit) {
    return gpu_get(g, PEAKS[unit]) * gpu_get(g, GPU_SM_COUNT) * gpu_get(g, GPU_BOOST_MHZ) * 1e-3;
}

case_floor floor_of(const gpu *g, const task_amounts *work) {
    if (!work->is_declared)
        return (case_floor){0};
    double longest = work->bytes / gpu_get(g, GPU_DRAM_GBS);
    case_floor made = {.launch_ns = gpu_get(g, GPU_LAUNCH_US) * 1e3, .bound_by = "DRAM"};
    double links = work->link_bytes / gpu_get(g, GPU_LINK_GBS);
    if (links > longest) {
        longest = links;
        made.bound_by = "links";
    }
    for (int unit = 0; unit < TASK_UNIT_COUNT; unit++) {
        double peak = peak_of(g, (task_unit)unit);
        double ns = peak > 0 ? work->operations[unit] / peak : 0;
        if (ns > longest) {
            longest = ns;
            made.bound_by = task_unit_name((task_unit)unit);
        }
    }
    made.ns = made.launch_ns + longest;
    return made;
}

/* The description of the device, or that of the same GPU model where times are measured. */
static const gpu *description_of(const fitness *f) {
    const gpu *own = device_description(f->d);
    if (own != NULL || f->twin == NULL || !device_properties_of(f->d)->twin_is_same)
        return own;
    return device_description(f->twin_device);
}

ev_status floor_at(const gpu *g, const task *t, const task_case *at, case_floor *out,
                   ev_error *err) {
    task_amounts work;
    size_t launches = 1;
    EV_TRY(task_work_of(t, at, &work, err));
    EV_TRY(task_launches_least(t, at, &launches, err));
    *out = g != NULL ? floor_of(g, &work) : (case_floor){0};
    out->ns += (double)(launches - 1) * out->launch_ns;
    out->launch_ns *= (double)launches;
    return EV_OK;
}

ev_status fitness_floor(const fitness *f, const task_case *at, case_floor *out, ev_error *err) {
    return floor_at(description_of(f), f->t, at, out, err);
}

ev_status fit_hold_floor(fitness *f, const task_case *which, double ns, gate at, score *s,
                         ev_error *err) {
    case_floor floor;
    if (!device_properties_of(f->d)->modelled)
        return EV_OK;
    EV_TRY(fitness_floor(f, which, &floor, err));
    double least = floor.ns * (1 - FLOOR_SLACK), base = fitness_baseline_ns(f, which->name);
    if (ns < least && base >= least)
        fit_stop(s, at, NULL,
                 "case %s: %.1f ns is below the floor of %.1f ns by the task's work: an alarm; the "
                 "work is not done or not seen, or the task declares too much",
                 which->name, ns, floor.ns);
    return EV_OK;
}
