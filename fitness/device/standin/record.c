/* Recording: writes what launches get and what they leave, for `evoke init --from-run`.
 *
 * EVOKE_STANDIN_RECORD names an existing folder. Each process that calls cuInit makes the next free
 * folder 1, 2, ... in it, with:
 *
 *   kernels     the names of the kernels that were launched, one a line
 *   said        messages of the stand-in
 *   left        launches that are not recorded, and why
 *   tables      the private tables that NVIDIA's libraries asked for
 *   N/          a recorded launch, N from 1: launch.json, and of each buffer and each variable of
 *               the module that the launch can reach, the bytes before and after
 *
 * launch.json is written last, so a folder without one is of a launch that did not end. While
 * launches are recorded, one kernel runs at a time: the bytes that a launch leaves are its own. */
#include "fitness/device/standin/standin.h"

#include "base/file.h"
#include "base/source/mangled.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINES_MOST = 200, PROCESSES_MOST = 1000, PARTS_MOST = 256 };

/* Files whose lines are messages, which may repeat: at most LINES_MOST of each are kept. */
static const char *const bounded[] = {"said", "left"};
enum { BOUNDED = sizeof bounded / sizeof *bounded };

/* A kernel with a geometry, and how many launches of it are recorded. */
typedef struct kind {
    char *kernel;
    uint32_t geometry[7]; /* grid, block, shared */
    uint64_t recorded;
} kind;

static struct {
    pthread_mutex_t lock; /* of folder and lines; taken inside of the state's lock, too */
    char *folder;         /* of this process; NULL: not made yet */
    unsigned lines[BOUNDED];
    /* Used by the queue's thread alone. */
    kind *kinds;
    size_t count, room;
    uint64_t launches, bytes, recorded;
    bool failed;
} record = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t number_from(const char *name, uint64_t otherwise) {
    const char *text = getenv(name);
    return text != NULL && *text != '\0' ? strtoull(text, NULL, 10) : otherwise;
}

bool sd_records(void) {
    const char *folder = getenv("EVOKE_STANDIN_RECORD");
    return folder != NULL && *folder != '\0';
}

/* The process's own folder; NULL: there is none, and none can be made. */
static const char *own_folder(void) {
    const char *folder = getenv("EVOKE_STANDIN_RECORD");
    for (unsigned i = 1; record.folder == NULL && folder != NULL && i <= PROCESSES_MOST; i++) {
        char path[4096];
        (void)snprintf(path, sizeof path, "%s/%u", folder, i);
        if (mkdir(path, 0777) == 0)
            record.folder = strdup(path);
        else if (errno != EEXIST)
            break;
    }
    return record.folder;
}

/* Counts a line; false: the file has enough. Under the lock. */
static bool has_room(const char *file) {
    for (size_t i = 0; i < BOUNDED; i++) {
        if (strcmp(file, bounded[i]) == 0)
            return record.lines[i]++ < LINES_MOST;
    }
    return true;
}

void sd_record_line(const char *file, const char *format, ...) {
    if (!sd_records())
        return;
    ev_str text = EV_STR_EMPTY;
    va_list args;
    va_start(args, format);
    ev_str_vprintf(&text, format, args);
    va_end(args);
    ev_str_char(&text, '\n');
    (void)pthread_mutex_lock(&record.lock);
    const char *folder = text.data != NULL && has_room(file) ? own_folder() : NULL;
    char *path = folder != NULL ? ev_path_join(folder, file) : NULL;
    int to = path != NULL ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;
    if (to >= 0) {
        (void)!write(to, ev_str_text(&text), text.length);
        (void)close(to);
    }
    free(path);
    (void)pthread_mutex_unlock(&record.lock);
    ev_str_free(&text);
}

void sd_record_begin(void) {
    if (!sd_records())
        return;
    (void)pthread_mutex_lock(&record.lock);
    bool made = own_folder() != NULL;
    (void)pthread_mutex_unlock(&record.lock);
    if (!made)
        sd_say("EVOKE_STANDIN_RECORD: cannot make a folder in %s: %s",
               getenv("EVOKE_STANDIN_RECORD"), strerror(errno));
}

/* ---- what is recorded -------------------------------------------------------------------------
 */

/* Whether EVOKE_STANDIN_RECORD_KERNEL means the kernel: by its name, or by the name in its symbol.
 */
static bool is_wanted(const char *kernel) {
    const char *name = getenv("EVOKE_STANDIN_RECORD_KERNEL");
    if (name == NULL || *name == '\0' || strcmp(name, kernel) == 0)
        return true;
    return ev_mangled_find(kernel, name) != NULL;
}

/* The row of the launch's kernel and geometry; NULL: out of memory. */
static kind *kind_of(const sd_entry *e) {
    const char *name = e->launch.function->entry->name;
    const uint32_t *g = e->launch.grid, *b = e->launch.block;
    const uint32_t geometry[7] = {g[0], g[1], g[2], b[0], b[1], b[2], e->launch.shared};
    bool is_new = true;
    for (size_t i = 0; i < record.count; i++) {
        bool same = strcmp(record.kinds[i].kernel, name) == 0;
        is_new &= !same;
        if (same && memcmp(record.kinds[i].geometry, geometry, sizeof geometry) == 0)
            return &record.kinds[i];
    }
    if (record.count == record.room) {
        size_t room = record.room == 0 ? 16 : record.room * 2;
        kind *more = realloc(record.kinds, room * sizeof *more);
        if (more == NULL)
            return NULL;
        record.kinds = more;
        record.room = room;
    }
    kind made = {.kernel = strdup(name)};
    if (made.kernel == NULL)
        return NULL;
    if (is_new)
        sd_record_line("kernels", "%s", name);
    memcpy(made.geometry, geometry, sizeof geometry);
    record.kinds[record.count] = made;
    return &record.kinds[record.count++];
}

/* Bytes of this process that a launch reaches. */
typedef struct part {
    const char *name; /* of a variable; NULL: a buffer */
    uint64_t address, bytes;
    const char *host;
} part;

struct sd_recording {
    char *folder;
    part parts[PARTS_MOST];
    size_t count;
    bool overflows; /* the launch reaches more parts */
};

static void add_part(sd_recording *r, part p) {
    for (size_t i = 0; i < r->count; i++) {
        bool is_alike = (r->parts[i].name == NULL) == (p.name == NULL);
        if (is_alike && r->parts[i].host == p.host && r->parts[i].bytes == p.bytes)
            return;
    }
    if (p.bytes == 0)
        return;
    if (r->count < PARTS_MOST)
        r->parts[r->count++] = p;
    else
        r->overflows = true;
}

static void find_parts(sd_recording *r, const sd_entry *e) {
    const sd_module *m = e->launch.function->module;
    uint64_t word = 0;
    for (uint32_t at = 0;
         vm_entry_next_word(e->launch.function->entry, e->launch.params, &at, &word);) {
        const sd_buffer *b = sd_buffer_at(word, 0);
        if (b != NULL)
            add_part(r, (part){.address = b->address, .bytes = b->bytes, .host = b->host});
    }
    const char *name = NULL;
    vm_variable v;
    for (size_t i = 0; (name = vm_module_variable_name(m->code, i, &v)) != NULL; i++) {
        uint64_t base = v.space == VM_SPACE_CONST ? m->constants : m->globals;
        const sd_buffer *b = sd_buffer_at(base + v.offset, v.bytes);
        if (b != NULL)
            add_part(r, (part){.name = name,
                               .address = base + v.offset,
                               .bytes = v.bytes,
                               .host = b->host + (base + v.offset - b->address)});
    }
}

static ev_status write_parts(const sd_recording *r, const char *when, ev_error *err) {
    ev_status status = EV_OK;
    for (size_t i = 0; status == EV_OK && i < r->count; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "%zu.%s", i, when);
        char *path = ev_path_join(r->folder, name);
        status = path != NULL ? ev_file_write(path, r->parts[i].host, r->parts[i].bytes, err)
                              : ev_fail_memory(err, strlen(r->folder));
        free(path);
    }
    return status;
}

static void free_recording(sd_recording *r) {
    if (r != NULL)
        free(r->folder);
    free(r);
}

/* Nothing more is recorded: the disk is full, or memory ran out. */
static void stop(const ev_error *err) {
    record.failed = true;
    sd_record_line("left", "the recording ended: %s", err->text);
    (void)fprintf(stderr, "libcuda stand-in: the recording ended: %s\n", err->text);
}

/* Whether the launch fits into what may be recorded. */
static bool fits(const sd_recording *r, const sd_entry *e) {
    uint64_t megabytes = number_from("EVOKE_STANDIN_RECORD_MB", 1024), bytes = 0;
    uint64_t most = megabytes < UINT64_MAX / 1000000 ? megabytes * 1000000 : UINT64_MAX;
    if (r->overflows) {
        sd_record_line("left",
                       "launch %" PRIu64 " (%s) is not recorded: it reaches more than %d buffers "
                       "and variables",
                       record.launches, e->launch.function->entry->name, PARTS_MOST);
        return false;
    }
    for (size_t i = 0; i < r->count; i++)
        bytes += 2 * r->parts[i].bytes;
    if (bytes <= most && record.bytes <= most - bytes) {
        record.bytes += bytes;
        return true;
    }
    sd_record_line("left",
                   "launch %" PRIu64 " (%s) is not recorded: its buffers before and after have "
                   "%.1f MB, and %.1f of %.1f MB are taken",
                   record.launches, e->launch.function->entry->name, (double)bytes * 1e-6,
                   (double)record.bytes * 1e-6, (double)most * 1e-6);
    return false;
}

static ev_status begin(sd_recording *r, ev_error *err) {
    char name[32];
    (void)snprintf(name, sizeof name, "%" PRIu64, ++record.recorded);
    (void)pthread_mutex_lock(&record.lock);
    const char *folder = own_folder();
    r->folder = folder != NULL ? ev_path_join(folder, name) : NULL;
    (void)pthread_mutex_unlock(&record.lock);
    if (r->folder == NULL)
        return ev_fail(err, EV_INFRA, "there is no folder for it");
    EV_TRY(ev_dir_make(r->folder, err));
    return write_parts(r, "before", err);
}

sd_recording *sd_record_before(const sd_entry *e) {
    if (!sd_records())
        return NULL;
    record.launches++;
    kind *k = kind_of(e);
    bool wants = k != NULL && !record.failed && is_wanted(k->kernel) &&
                 k->recorded < number_from("EVOKE_STANDIN_RECORD_LAUNCHES", 3);
    sd_recording *r = wants ? calloc(1, sizeof *r) : NULL;
    if (r == NULL && (k == NULL || wants)) {
        ev_error none = {0};
        (void)ev_fail_memory(&none, sizeof *r);
        stop(&none);
    }
    if (r == NULL)
        return NULL;
    find_parts(r, e);
    ev_error err = {0};
    if (!fits(r, e)) {
        free_recording(r);
        return NULL;
    }
    k->recorded++;
    if (begin(r, &err) == EV_OK)
        return r;
    stop(&err);
    free_recording(r);
    return NULL;
}

/* Names are those of PTX, so no text needs an escape. */
static void describe(const sd_recording *r, const sd_entry *e, CUresult result, ev_str *out) {
    const vm_entry *entry = e->launch.function->entry;
    const uint32_t *g = e->launch.grid, *b = e->launch.block;
    ev_str_printf(out, "{\"kernel\": \"%s\", \"number\": %" PRIu64 ", \"result\": %d,\n",
                  entry->name, record.launches, (int)result);
    ev_str_printf(out, " \"grid\": [%u, %u, %u], \"block\": [%u, %u, %u], \"shared\": %u,\n", g[0],
                  g[1], g[2], b[0], b[1], b[2], e->launch.shared);
    ev_str_append(out, " \"parameters\": [");
    for (size_t i = 0; i < entry->param_count; i++)
        ev_str_printf(out, "%s[%u, %u]", i > 0 ? ", " : "", entry->params[i].offset,
                      entry->params[i].bytes);
    ev_str_append(out, "],\n \"values\": \"");
    ev_str_hex(out, e->launch.params, entry->param_bytes);
    ev_str_append(out, "\",\n \"parts\": [");
    for (size_t i = 0; i < r->count; i++) {
        const part *p = &r->parts[i];
        ev_str_printf(out, "%s{\"address\": %" PRIu64 ", \"bytes\": %" PRIu64, i > 0 ? ", " : "",
                      p->address, p->bytes);
        if (p->name != NULL)
            ev_str_printf(out, ", \"variable\": \"%s\"", p->name);
        ev_str_append(out, "}");
    }
    ev_str_append(out, "]}\n");
}

void sd_record_after(sd_recording *r, const sd_entry *e, CUresult result) {
    if (r == NULL)
        return;
    ev_error err = {0};
    ev_str text = EV_STR_EMPTY;
    describe(r, e, result, &text);
    ev_status status = ev_str_status(&text, &err);
    if (status == EV_OK)
        status = write_parts(r, "after", &err);
    char *path = ev_path_join(r->folder, "launch.json");
    if (status == EV_OK)
        status = path != NULL ? ev_file_write(path, text.data, text.length, &err)
                              : ev_fail_memory(&err, strlen(r->folder));
    if (status != EV_OK)
        stop(&err);
    free(path);
    ev_str_free(&text);
    free_recording(r);
}
