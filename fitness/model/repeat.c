/* Repeats: blocks that execute the same events as an earlier block, at shifted addresses.
 *
 * Most blocks of a grid execute the same instructions and touch the same pattern of sectors,
 * shifted by one constant in each buffer. Where every batch of a block matches and each shift is a
 * whole number of lines, the caches hit and miss alike, the warps wait alike, and the sums are
 * equal. Such a block needs no simulation. The set of the L1 that a line maps to is the one
 * difference: the set comes from a hash, and the model neglects it.
 *
 * The log of an earlier block (a leader) holds all its batches. A later block is compared with the
 * log while the block runs (`model_log_fits`). At the first difference the matching part is read
 * back from the log (`model_log_read`) and simulated after all. */
#include "fitness/model/repeat.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define MOST_EVENTS (1u << 16)  /* of a log */
#define MOST_SECTORS (1u << 17) /* of a log */
#define SECTORS_PER_LINE 4

typedef struct log_batch {
    uint32_t warp, events;
    size_t first_event, first_sector, first_access;
} log_batch;

/* An event's sectors, all in one buffer. */
typedef struct log_access {
    uint16_t sectors;
    uint16_t buffer;
} log_access;

typedef struct log_sector {
    uint64_t sector;
    uint32_t buffer;
} log_sector;

struct model_log {
    log_batch *batches;
    vm_event *events;
    uint64_t *sectors;
    log_access *accesses;
    log_sector *stored, *atomic;
    size_t batch_count, event_count, sector_count, access_count, stored_count, atomic_count;
    size_t batch_room, event_room, sector_room, access_room, stored_room, atomic_room;
    uint64_t low[MODEL_MAX_BUFFERS + 1],
        high[MODEL_MAX_BUFFERS + 1]; /* sectors; low > high: none */
    bool is_broken; /* it holds too much, or something that is no pattern; what is there stays */
    bool is_whole;
};

/* ---- writing ---- */

static bool make_room(void *array, size_t *room, size_t needed, size_t size) {
    void *items;
    memcpy(&items, array, sizeof items);
    if (needed <= *room)
        return true;
    size_t wanted = *room * 2 > needed ? *room * 2 : needed + 64;
    void *more = realloc(items, wanted * size);
    if (more == NULL)
        return false;
    memcpy(array, &more, sizeof more);
    *room = wanted;
    return true;
}

void model_log_clear(model_log *log) {
    log->batch_count = log->event_count = log->sector_count = log->access_count = 0;
    log->stored_count = log->atomic_count = 0;
    log->is_broken = log->is_whole = false;
    for (size_t i = 0; i <= MODEL_MAX_BUFFERS; i++) {
        log->low[i] = UINT64_MAX;
        log->high[i] = 0;
    }
}

model_log *model_log_new(void) {
    model_log *log = calloc(1, sizeof *log);
    if (log != NULL)
        model_log_clear(log);
    return log;
}

void model_log_free(model_log *log) {
    if (log == NULL)
        return;
    free(log->batches);
    free(log->events);
    free(log->sectors);
    free(log->accesses);
    free(log->stored);
    free(log->atomic);
    free(log);
}

static size_t batch_sectors(const vm_batch *batch) {
    size_t count = 0;
    for (size_t i = 0; i < batch->count; i++)
        count += batch->events[i].sectors;
    return count;
}

/* False: its sectors are in several buffers. */
static bool add_access(model_log *log, model_buffers *buffers, const uint64_t *sectors,
                       unsigned count) {
    size_t buffer = model_buffer_of_sector(buffers, sectors[0]);
    for (unsigned i = 0; i < count; i++) {
        if (i > 0 && model_buffer_of_sector(buffers, sectors[i]) != buffer)
            return false;
        log->low[buffer] = sectors[i] < log->low[buffer] ? sectors[i] : log->low[buffer];
        log->high[buffer] = sectors[i] > log->high[buffer] ? sectors[i] : log->high[buffer];
    }
    log->accesses[log->access_count++] = (log_access){(uint16_t)count, (uint16_t)buffer};
    return true;
}

void model_log_add(model_log *log, model_buffers *buffers, const vm_batch *batch) {
    size_t sectors = batch_sectors(batch);
    log->is_broken =
        log->is_broken || log->event_count + batch->count > MOST_EVENTS ||
        log->sector_count + sectors > MOST_SECTORS ||
        !make_room(&log->batches, &log->batch_room, log->batch_count + 1, sizeof *log->batches) ||
        !make_room(&log->events, &log->event_room, log->event_count + batch->count,
                   sizeof *log->events) ||
        !make_room(&log->sectors, &log->sector_room, log->sector_count + sectors,
                   sizeof *log->sectors) ||
        !make_room(&log->accesses, &log->access_room, log->access_count + batch->count,
                   sizeof *log->accesses);
    if (log->is_broken)
        return;
    log_batch made = {batch->warp, (uint32_t)batch->count, log->event_count, log->sector_count,
                      log->access_count};
    for (size_t i = 0; i < batch->count && !log->is_broken; i++) {
        const vm_event *e = &batch->events[i];
        if (e->sectors > 0)
            log->is_broken =
                !add_access(log, buffers, batch->sectors + e->first_sector, e->sectors);
    }
    if (log->is_broken)
        return;
    memcpy(log->events + log->event_count, batch->events, batch->count * sizeof *log->events);
    if (sectors > 0)
        memcpy(log->sectors + log->sector_count, batch->sectors, sectors * sizeof *log->sectors);
    log->event_count += batch->count;
    log->sector_count += sectors;
    log->batches[log->batch_count++] = made;
}

void model_log_store(model_log *log, model_buffers *buffers, uint64_t sector) {
    log->is_broken = log->is_broken || !make_room(&log->stored, &log->stored_room,
                                                  log->stored_count + 1, sizeof *log->stored);
    if (!log->is_broken)
        log->stored[log->stored_count++] =
            (log_sector){sector, (uint32_t)model_buffer_of_sector(buffers, sector)};
}

void model_log_update(model_log *log, model_buffers *buffers, uint64_t sector) {
    log->is_broken = log->is_broken || !make_room(&log->atomic, &log->atomic_room,
                                                  log->atomic_count + 1, sizeof *log->atomic);
    if (!log->is_broken)
        log->atomic[log->atomic_count++] =
            (log_sector){sector, (uint32_t)model_buffer_of_sector(buffers, sector)};
}

void model_log_end(model_log *log) {
    log->is_whole = !log->is_broken;
}

/* ---- comparing ---- */

static bool shift_fits(model_repeat *at, unsigned buffer, uint64_t shift) {
    if (at->known >> buffer & 1)
        return at->shift[buffer] == shift;
    at->known |= UINT64_C(1) << buffer;
    at->shift[buffer] = shift;
    return shift % SECTORS_PER_LINE == 0;
}

/* Index of the first access behind those of the batch. */
static size_t accesses_end(const model_log *log, size_t batch) {
    return batch + 1 < log->batch_count ? log->batches[batch + 1].first_access : log->access_count;
}

static bool sectors_fit(const model_log *log, model_repeat *at, const log_batch *b,
                        const uint64_t *now) {
    size_t end = accesses_end(log, at->batch), sector = b->first_sector;
    for (size_t i = b->first_access; i < end; i++) {
        const log_access *a = &log->accesses[i];
        const uint64_t *then = &log->sectors[sector];
        uint64_t shift = now[0] - then[0], differ = 0;
        for (unsigned k = 1; k < a->sectors; k++)
            differ |= (now[k] - then[k]) ^ shift;
        if (differ != 0 || !shift_fits(at, a->buffer, shift))
            return false;
        now += a->sectors;
        sector += a->sectors;
    }
    return true;
}

bool model_log_fits(const model_log *log, model_repeat *at, const vm_batch *batch) {
    if (at->batch >= log->batch_count)
        return false;
    const log_batch *b = &log->batches[at->batch];
    if (b->warp != batch->warp || b->events != batch->count ||
        memcmp(log->events + b->first_event, batch->events, batch->count * sizeof *batch->events) !=
            0 ||
        !sectors_fit(log, at, b, batch->sectors))
        return false;
    at->batch++;
    return true;
}

bool model_log_ends(const model_log *log, const model_repeat *at, model_buffers *buffers) {
    if (!log->is_whole || at->batch != log->batch_count)
        return false;
    for (size_t i = 0; i <= MODEL_MAX_BUFFERS; i++) {
        if (log->low[i] > log->high[i])
            continue;
        uint64_t shift = at->shift[i];
        if (model_buffer_of_sector(buffers, log->low[i] + shift) != i ||
            model_buffer_of_sector(buffers, log->high[i] + shift) != i)
            return false;
    }
    return true;
}

/* ---- reading back ---- */

bool model_log_read(const model_log *log, const model_repeat *at, size_t index, uint32_t block,
                    model_copy *copy, vm_batch *out) {
    const log_batch *b = &log->batches[index];
    size_t end = accesses_end(log, index), sector = b->first_sector, n = 0;
    for (size_t i = b->first_access; i < end; i++)
        n += log->accesses[i].sectors;
    if (!make_room(&copy->sectors, &copy->room, n + 1, sizeof *copy->sectors))
        return false;
    n = 0;
    for (size_t i = b->first_access; i < end; i++)
        for (unsigned k = 0; k < log->accesses[i].sectors; k++)
            copy->sectors[n++] = log->sectors[sector++] + at->shift[log->accesses[i].buffer];
    *out = (vm_batch){.block = block,
                      .warp = b->warp,
                      .events = log->events + b->first_event,
                      .count = b->events,
                      .sectors = copy->sectors};
    return true;
}

size_t model_log_updated_count(const model_log *log) {
    return log->atomic_count;
}

uint64_t model_log_updated(const model_log *log, const model_repeat *at, size_t index) {
    assert(index < log->atomic_count);
    return log->atomic[index].sector + at->shift[log->atomic[index].buffer];
}

size_t model_log_stored_count(const model_log *log) {
    return log->stored_count;
}

uint64_t model_log_stored(const model_log *log, const model_repeat *at, size_t index) {
    assert(index < log->stored_count);
    return log->stored[index].sector + at->shift[log->stored[index].buffer];
}
