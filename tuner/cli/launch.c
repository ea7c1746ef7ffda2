/* Prepares the launch of a PTX file: reads argument specs, makes buffers, packs parameters. */
#include "tuner/cli/launch.h"

#include "base/file.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- argument specs ---- */

static const struct {
    const char *name;
    bool has_contents; /* HEX, else BYTES */
    vm_buffer_kind kind;
} buffer_specs[] = {
    {"in", true, VM_BUFFER_IN},
    {"out", false, VM_BUFFER_OUT},
    {"inout", true, VM_BUFFER_INOUT},
};

#define SPEC_COUNT (sizeof buffer_specs / sizeof buffer_specs[0])

static int hex_digit(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* "@FILE": its bytes. */
static ev_status read_contents(const char *path, ptx_argument *out, ev_error *err) {
    char *data = NULL;
    size_t bytes = 0;
    EV_TRY(ev_file_read(path, &data, &bytes, err));
    out->data = (unsigned char *)data;
    out->bytes = bytes;
    return bytes > 0 ? EV_OK
                     : ev_fail(err, EV_BAD, "%s is empty; a buffer needs at least one byte", path);
}

static ev_status read_hex(const char *spec, const char *hex, ptx_argument *out, ev_error *err) {
    if (hex[0] == '@')
        return read_contents(hex + 1, out, err);
    size_t digits = strlen(hex);
    if (digits == 0 || digits % 2 != 0)
        return ev_fail(err, EV_BAD,
                       "--arg %.40s: %zu hex digits; give two for each byte, and at least one byte",
                       spec, digits);
    out->bytes = digits / 2;
    out->data = malloc(out->bytes);
    if (out->data == NULL)
        return ev_fail_memory(err, out->bytes);
    for (size_t i = 0; i < out->bytes; i++) {
        int high = hex_digit(hex[2 * i]), low = hex_digit(hex[2 * i + 1]);
        if (high < 0 || low < 0)
            return ev_fail(err, EV_BAD, "--arg %.40s: '%.2s' at digit %zu is not hex (0-9, a-f)",
                           spec, hex + 2 * i, 2 * i);
        out->data[i] = (unsigned char)(high << 4 | low);
    }
    return EV_OK;
}

static ev_status read_bytes(const char *spec, const char *text, ptx_argument *out, ev_error *err) {
    char *end = NULL;
    errno = 0;
    out->bytes = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || out->bytes == 0)
        return ev_fail(err, EV_BAD, "--arg %.40s: needs a number of bytes, like out:1024", spec);
    return EV_OK;
}

/* A float's bits. *overflows: a finite number was written, and the type makes an infinity of it. */
static bool read_float(ev_type type, const char *text, uint64_t *bits, bool *overflows) {
    char *end = NULL;
    double value = strtod(text, &end);
    ev_type_set(type, bits, 0, value);
    bool is_written_finite = isfinite(value) || errno == ERANGE;
    *overflows = is_written_finite && isinf(ev_type_get(type, bits, 0));
    return end != text && *end == '\0';
}

/* A scalar's bits; false: the text is no value of the type, or out of its range. */
static bool read_scalar(ev_type type, const char *text, uint64_t *bits, bool *overflows) {
    char *end = NULL;
    errno = 0;
    *bits = 0;
    *overflows = false;
    if (ev_type_is_float(type))
        return read_float(type, text, bits, overflows);
    unsigned width = (unsigned)ev_type_bytes(type) * 8;
    bool is_signed = ev_type_name(type)[0] == 's';
    bool fits;
    if (is_signed) {
        long long value = strtoll(text, &end, 0);
        long long most = (long long)(UINT64_MAX >> 1 >> (64 - width));
        fits = value <= most && value >= -most - 1;
        *bits = (uint64_t)value & UINT64_MAX >> (64 - width);
    } else {
        *bits = strtoull(text, &end, 0);
        fits = text[0] != '-' && *bits <= UINT64_MAX >> (64 - width);
    }
    return fits && end != text && *end == '\0' && errno == 0;
}

/* The part of "HEX,HEX,..." that is for the launch's rank; one part is for all. malloc'ed. */
static ev_status choose_part(const ptx_launch *l, const char *spec, const char *value, char **out,
                             ev_error *err) {
    uint32_t parts = 1;
    for (const char *at = value; l->ranks > 1 && *at != '\0'; at++)
        parts += *at == ',';
    if (parts != 1 && parts != l->ranks)
        return ev_fail(err, EV_BAD, "--arg %.40s: %u parts for %u ranks; give one, or one a rank",
                       spec, parts, l->ranks);
    for (uint32_t i = 0; parts > 1 && i < l->rank; i++)
        value = strchr(value, ',') + 1;
    *out = strndup(value, parts > 1 ? strcspn(value, ",") : strlen(value));
    return *out != NULL ? EV_OK : ev_fail_memory(err, strlen(value));
}

static ev_status read_buffer(const ptx_launch *l, const char *spec, const char *value,
                             bool has_contents, ptx_argument *out, ev_error *err) {
    out->is_buffer = true;
    if (!has_contents)
        return read_bytes(spec, value, out, err);
    char *part = NULL;
    EV_TRY(choose_part(l, spec, value, &part, err));
    ev_status status = read_hex(spec, part, out, err);
    free(part);
    return status;
}

/* ---- textures and surfaces: "tex:SIZE,FORMAT,WORDS...:HEX" ---- */

#define TEXTURE_MOST (1u << 20) /* elements of a dimension */

/* "64x32x8" or "64x32*4", with layers behind the star. Returns what follows; NULL: no such size. */
static const char *read_size(const char *text, vm_texture *t) {
    uint32_t *const sizes[] = {&t->width, &t->height, &t->depth};
    for (unsigned i = 0; i < 4; i++) {
        char *end = NULL;
        unsigned long value = strtoul(text, &end, 10);
        if (text[0] < '1' || text[0] > '9' || value > TEXTURE_MOST)
            return NULL;
        bool layers = i > 0 && text[-1] == '*';
        if (i == 3 && !layers)
            return NULL;
        *(layers ? &t->layers : sizes[i]) = (uint32_t)value;
        text = end;
        if (layers || (*text != 'x' && *text != '*'))
            return text;
        text++;
    }
    return NULL;
}

/* "f32", "u8x4". */
static bool read_format(const char *text, size_t length, vm_texture *t) {
    char name[8] = "";
    t->channels = 1;
    if (length > 2 && text[length - 2] == 'x') {
        t->channels = (uint8_t)(text[length - 1] - '0');
        length -= 2;
    }
    memcpy(name, text, length < sizeof name ? length : sizeof name - 1);
    return ev_type_find(name, &t->channel);
}

/* One word behind the format; false: there is no such word. */
static bool read_texture_word(const char *text, size_t length, vm_texture *t) {
    static const char *const modes[] = {"wrap", "clamp", "mirror", "border"}; /* ptx_address_mode */
    bool *const flags[] = {&t->sampler.linear, &t->sampler.normalised, &t->as_float, &t->linear,
                           &t->cube};
    static const char *const words[] = {"linear", "normalised", "floats", "memory", "cube"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i]) == length && strncmp(words[i], text, length) == 0)
            return *flags[i] = true;
    for (uint8_t i = 0; i < 4; i++)
        if (strlen(modes[i]) == length && strncmp(modes[i], text, length) == 0) {
            memset(t->sampler.modes, i, sizeof t->sampler.modes);
            return true;
        }
    return false;
}

static ev_status describe_texture(const char *spec, const char *value, vm_texture *t,
                                  ev_error *err) {
    memset(t->sampler.modes, 1, sizeof t->sampler.modes); /* clamp */
    const char *at = read_size(value, t);
    size_t length = at != NULL && *at == ',' ? strcspn(at + 1, ",:") : 0;
    if (length == 0 || !read_format(at + 1, length, t))
        return ev_fail(err, EV_BAD,
                       "--arg %.40s: needs a size and a format, like tex:64x32,f32:@FILE or "
                       "surf:64*6,u8x4",
                       spec);
    for (at += 1 + length; *at == ','; at += length) {
        at++;
        length = strcspn(at, ",:");
        if (!read_texture_word(at, length, t))
            return ev_fail(err, EV_BAD,
                           "--arg %.40s: there is no word '%.*s'; linear, normalised, floats, "
                           "memory, cube, wrap, clamp, mirror and border are",
                           spec, (int)length, at);
    }
    return EV_OK;
}

static uint64_t at_least_one(uint32_t n) {
    return n > 0 ? n : 1;
}

/* A texture is an input. A surface is an output, or both where it has contents. */
static ev_status read_texture(const ptx_launch *l, const char *spec, const char *value,
                              bool surface, ptx_argument *out, ev_error *err) {
    vm_texture *t = &out->texture;
    t->surface = surface;
    EV_TRY(describe_texture(spec, value, t, err));
    uint64_t element = ev_type_bytes(t->channel) * t->channels;
    t->row_bytes = t->width * element;
    t->slice_bytes = t->row_bytes * at_least_one(t->height);
    uint64_t slices = at_least_one(t->depth) * at_least_one(t->layers), most = UINT64_C(1) << 40;
    uint64_t bytes = t->slice_bytes <= most / slices ? t->slice_bytes * slices : most;
    const char *contents = strchr(value, ':');
    vm_buffer_kind read = surface ? VM_BUFFER_INOUT : VM_BUFFER_IN;
    out->is_texture = true;
    out->is_buffer = true;
    out->kind = contents != NULL ? read : VM_BUFFER_OUT;
    if (contents == NULL && !surface)
        return ev_fail(err, EV_BAD, "--arg %.40s: needs its elements, like tex:64,f32:@FILE", spec);
    out->bytes = bytes;
    if (contents != NULL)
        EV_TRY(read_buffer(l, spec, contents + 1, true, out, err));
    if (out->bytes != bytes || bytes == most)
        return ev_fail(err, EV_BAD, "--arg %.40s: has %" PRIu64 " bytes, and its size has %" PRIu64,
                       spec, out->bytes, bytes);
    return EV_OK;
}

/* rank:TYPE, ranks:TYPE, peers:I, next:I; *known false: none of these. */
static ev_status read_rank_spec(const ptx_launch *l, const char *spec, const char *value,
                                ptx_argument *out, ev_type *type, bool *known, ev_error *err) {
    size_t length = (size_t)(value - 1 - spec);
    bool rank = length == 4 && strncmp(spec, "rank", 4) == 0;
    bool next = length == 4 && strncmp(spec, "next", 4) == 0;
    bool ranks = length == 5 && strncmp(spec, "ranks", 5) == 0;
    bool peers = length == 5 && strncmp(spec, "peers", 5) == 0;
    *known = rank || next || ranks || peers;
    if (rank || ranks) {
        if (!ev_type_find(value, type) || ev_type_is_float(*type) || ev_type_bytes(*type) < 4)
            return ev_fail(err, EV_BAD, "--arg %.40s: needs a type: u32, s32, u64 or s64", spec);
        out->bytes = ev_type_bytes(*type);
        out->scalar = rank ? l->rank : l->ranks;
    } else if (next || peers) {
        char *end = NULL;
        out->link = next ? PTX_LINK_NEXT : PTX_LINK_PEERS;
        out->link_to = strtoul(value, &end, 10);
        if (*end == '.' && end[1] >= '0' && end[1] <= '9')
            out->link_field = strtoul(end + 1, &end, 10);
        if (value[0] < '0' || value[0] > '9' || *end != '\0')
            return ev_fail(err, EV_BAD,
                           "--arg %.40s: needs the number of an argument, from 0, or of a field of "
                           "a struct, like 1.0",
                           spec);
        out->bytes = next ? 8 : l->ranks * 8ull;
        out->is_buffer = peers;
        out->kind = VM_BUFFER_IN;
    }
    return EV_OK;
}

/* Sets *type for a scalar. */
static ev_status read_spec(const ptx_launch *l, const char *spec, ptx_argument *out, ev_type *type,
                           ev_error *err) {
    size_t length = strcspn(spec, ":");
    bool known = false;
    out->spec = spec;
    if (spec[length] != ':')
        return ev_fail(err, EV_BAD,
                       "--arg %.40s: needs KIND:VALUE, like in:0000803f, out:1024 or u32:5", spec);
    const char *value = spec + length + 1;
    for (size_t i = 0; i < SPEC_COUNT; i++) {
        if (strlen(buffer_specs[i].name) != length ||
            strncmp(buffer_specs[i].name, spec, length) != 0)
            continue;
        out->kind = buffer_specs[i].kind;
        return read_buffer(l, spec, value, buffer_specs[i].has_contents, out, err);
    }
    EV_TRY(read_rank_spec(l, spec, value, out, type, &known, err));
    if (known)
        return EV_OK;
    if (strncmp(spec, "tex:", 4) == 0 || strncmp(spec, "surf:", 5) == 0)
        return read_texture(l, spec, value, spec[0] == 's', out, err);
    char name[8] = "";
    memcpy(name, spec, length < sizeof name ? length : sizeof name - 1);
    if (!ev_type_find(name, type))
        return ev_fail(
            err, EV_BAD,
            "--arg %.40s: there is no kind '%.*s'; in, out and inout are buffers; tex is "
            "a texture and surf a surface; u8 to s64, f16, bf16, f32 and f64 are scalars; struct "
            "has fields of these "
            "kinds; rank, ranks, peers and next are for --ranks",
            spec, (int)length, spec);
    out->bytes = ev_type_bytes(*type);
    bool overflows;
    bool is_value = read_scalar(*type, value, &out->scalar, &overflows);
    if (is_value && overflows)
        return ev_fail(err, EV_BAD,
                       "--arg %.40s: %.40s is beyond the largest number of %s; write inf for an "
                       "infinity",
                       spec, value, name);
    if (!is_value)
        return ev_fail(err, EV_BAD, "--arg %.40s: '%.40s' is no value of type %s", spec, value,
                       name);
    return EV_OK;
}

/* ---- the launch ---- */

static ev_status make_buffer(ptx_launch *l, ptx_argument *argument, const char *name,
                             ev_error *err) {
    EV_TRY(device_alloc(l->device, argument->bytes, argument->kind, name, &argument->buffer, err));
    if (argument->data == NULL)
        return EV_OK;
    return device_write(l->device, argument->buffer, 0, argument->data, argument->bytes, err);
}

/* Reads the spec and makes its buffer. *bytes: those that the argument has in the parameters. */
static ev_status fill_argument(ptx_launch *l, const char *spec, const char *name,
                               ptx_argument *argument, uint64_t *bytes, ev_error *err) {
    ev_type type = EV_U64;
    EV_TRY(read_spec(l, spec, argument, &type, err));
    *bytes = argument->is_buffer ? 8 : argument->bytes;
    if (!argument->is_buffer)
        return EV_OK;
    EV_TRY(make_buffer(l, argument, name, err));
    argument->scalar = device_address(l->device, argument->buffer);
    return argument->is_texture ? device_texture(l->device, argument->buffer, &argument->texture,
                                                 &argument->scalar, err)
                                : EV_OK;
}

static ev_status set_plain(ptx_launch *l, size_t index, const char *spec, ev_error *err) {
    const vm_entry *entry = device_kernel_entry(l->kernel);
    const vm_param *param = &entry->params[index];
    ptx_argument *argument = &l->arguments[l->argument_count++];
    uint64_t bytes = 0;
    argument->parameter = index;
    argument->offset = param->offset;
    EV_TRY(fill_argument(l, spec, param->name, argument, &bytes, err));
    if (bytes != param->bytes)
        return ev_fail(err, EV_BAD,
                       "--arg %.40s: has %" PRIu64 " bytes, and parameter %zu (%s) of %s has %u%s",
                       spec, bytes, index, param->name, entry->name, param->bytes,
                       param->bytes > 8 ? "; a struct is given like struct:in:0000803f;u32:1" : "");
    memcpy(l->params + param->offset, &argument->scalar, bytes);
    return EV_OK;
}

/* ---- structs: "struct[@BYTES]:KIND[@OFFSET]:VALUE;KIND[@OFFSET]:VALUE..." ---- */

#define STRUCT_MOST 32764 /* bytes of all parameters of a kernel, at most */

static bool is_struct(const char *spec) {
    return strncmp(spec, "struct", 6) == 0 && (spec[6] == ':' || spec[6] == '@');
}

static size_t count_fields(const char *spec) {
    size_t count = 1;
    for (const char *at = is_struct(spec) ? spec : ""; *at != '\0'; at++)
        count += *at == ';';
    return count;
}

/* The number behind '@' before the first colon of spec[0..length). *given false: there is none. */
static ev_status read_place(const char *spec, size_t length, uint32_t *out, bool *given,
                            ev_error *err) {
    const char *at = memchr(spec, '@', length), *colon = memchr(spec, ':', length);
    *given = at != NULL && colon != NULL && at < colon;
    if (!*given)
        return EV_OK;
    char *end = NULL;
    unsigned long value = strtoul(at + 1, &end, 10);
    if (end != colon || at[1] < '0' || at[1] > '9' || value > STRUCT_MOST)
        return ev_fail(err, EV_BAD, "--arg %.40s: '%.*s' is no number of bytes up to %d", spec,
                       (int)(colon - at - 1), at + 1, STRUCT_MOST);
    *out = (uint32_t)value;
    return EV_OK;
}

/* spec[0..length) without "@OFFSET"; malloc'ed, NULL without memory. */
static char *without_place(const char *spec, size_t length, bool has_place) {
    char *text = strndup(spec, length);
    char *at = text != NULL && has_place ? strchr(text, '@') : NULL;
    if (at != NULL)
        memmove(at, strchr(at, ':'), strlen(strchr(at, ':')) + 1);
    return text;
}

/* The layout of a struct while its fields are read: bytes from its start. */
typedef struct struct_layout {
    uint32_t end, align;
} struct_layout;

/* One field, at its own place or at the next multiple of its size behind the fields before. */
static ev_status set_field(ptx_launch *l, const vm_param *param, const char *spec, size_t length,
                           ptx_argument *argument, struct_layout *layout, ev_error *err) {
    uint32_t at = 0;
    uint64_t bytes = 0;
    bool placed = false;
    EV_TRY(read_place(spec, length, &at, &placed, err));
    argument->text = without_place(spec, length, placed);
    if (argument->text == NULL)
        return ev_fail_memory(err, length);
    EV_TRY(fill_argument(l, argument->text, param->name, argument, &bytes, err));
    uint32_t width = (uint32_t)bytes;
    if (!placed)
        at = (layout->end + width - 1) / width * width;
    if (at < layout->end || at + width > param->bytes)
        return ev_fail(err, EV_BAD,
                       "--arg %.40s: the field has bytes %u to %u of the struct; it must begin at "
                       "%u or behind and end at %u, the struct's size",
                       argument->text, at, at + width, layout->end, param->bytes);
    memcpy(l->params + param->offset + at, &argument->scalar, width);
    argument->offset = param->offset + at;
    layout->end = at + width;
    layout->align = width > layout->align ? width : layout->align;
    return EV_OK;
}

static ev_status set_struct(ptx_launch *l, size_t index, const char *spec, ev_error *err) {
    const vm_entry *entry = device_kernel_entry(l->kernel);
    const vm_param *param = &entry->params[index];
    struct_layout layout = {0, 1};
    uint32_t bytes = 0;
    bool sized = false;
    EV_TRY(read_place(spec, strlen(spec), &bytes, &sized, err));
    const char *at = strchr(spec, ':') + 1;
    size_t count = count_fields(spec);
    for (size_t i = 0; i < count; i++, at += strcspn(at, ";") + 1) {
        ptx_argument *argument = &l->arguments[l->argument_count++];
        argument->parameter = index;
        argument->field = i;
        ev_status status = set_field(l, param, at, strcspn(at, ";"), argument, &layout, err);
        if (status != EV_OK)
            return ev_wrap(err, status, "field %zu of parameter %zu (%s)", i, index, param->name);
    }
    if (!sized)
        bytes = (layout.end + layout.align - 1) / layout.align * layout.align;
    if (bytes != param->bytes)
        return ev_fail(err, EV_BAD,
                       "--arg %.40s: has %u bytes, and parameter %zu (%s) of %s has %u; give all "
                       "fields, or struct@%u: if the rest is padding",
                       spec, bytes, index, param->name, entry->name, param->bytes, param->bytes);
    return EV_OK;
}

static ev_status set_params(ptx_launch *l, const cli_args *args, ev_error *err) {
    const vm_entry *entry = device_kernel_entry(l->kernel);
    if (args->list_count != entry->param_count)
        return ev_fail(err, EV_BAD, "%s: %s has %zu parameters, and %zu --arg were given", l->path,
                       entry->name, entry->param_count, args->list_count);
    size_t count = 0;
    for (size_t i = 0; i < args->list_count; i++)
        count += count_fields(args->list[i]);
    l->arguments = calloc(count + 1, sizeof *l->arguments);
    l->params = calloc(1, (size_t)entry->param_bytes + 8);
    if (l->arguments == NULL || l->params == NULL)
        return ev_fail_memory(err, entry->param_bytes);
    for (size_t i = 0; i < args->list_count; i++)
        EV_TRY(is_struct(args->list[i]) ? set_struct(l, i, args->list[i], err)
                                        : set_plain(l, i, args->list[i], err));
    return EV_OK;
}

/* By the option's words, in the order of vm_approx. */
static vm_approx approx_of(const char *word) {
    static const char *const words[VM_APPROX_COUNT] = {"nearest", "worst", "turned"};
    unsigned approx = 0;
    while (word != NULL && approx + 1 < VM_APPROX_COUNT && strcmp(words[approx], word) != 0)
        approx++;
    return word != NULL ? (vm_approx)approx : VM_APPROX_NEAREST;
}

static ev_status set_geometry(ptx_launch *l, const cli_args *args, ev_error *err) {
    uint64_t shared = cli_count(args, CLI_OPT_SHARED, 0);
    if (shared > UINT32_MAX)
        return ev_fail(err, EV_BAD, "--shared %" PRIu64 ": no GPU has that much", shared);
    cli_sizes(args, CLI_OPT_GRID, l->geometry.grid);
    cli_sizes(args, CLI_OPT_BLOCK, l->geometry.block);
    l->geometry.shared_bytes = (uint32_t)shared;
    l->launch = device_launch_of(&l->geometry);
    l->launch.params = l->params;
    bool none = strcmp(args->values[CLI_OPT_CHECKS], "none") == 0;
    l->launch.checks = none ? VM_CHECK_NONE : VM_CHECK_ALL;
    l->launch.approx = approx_of(cli_text(args, CLI_OPT_APPROX));
    l->launch.fuel = cli_count(args, CLI_OPT_FUEL, 0);
    l->launch.schedule_seed = cli_count(args, CLI_OPT_SCHEDULE, 0);
    uint64_t jobs = cli_count(args, CLI_OPT_JOBS, 1);
    l->launch.jobs = jobs < 256 ? (uint32_t)jobs : 256;
    return EV_OK;
}

/* What a GPU would not do as this launch does. */
static void warn_of_assembler(const ptx_launch *l) {
    const char *what = "";
    uint32_t line = vm_module_ptxas_fault(device_kernel_module(l->kernel), &what);
    if (line > 0)
        (void)fprintf(stderr, "evoke: %s:%u: %s\n", l->path, line, what);
}

static ev_status open_parts(ptx_launch *l, const cli_args *args, ev_error *err) {
    EV_TRY(ev_file_read(l->path, &l->ptx, &l->ptx_bytes, err));
    ev_status loaded = device_load(l->device, l->ptx, l->ptx_bytes, cli_text(args, CLI_OPT_ENTRY),
                                   &l->kernel, err);
    if (loaded != EV_OK)
        return ev_wrap(err, loaded, "%s", l->path);
    warn_of_assembler(l);
    EV_TRY(set_params(l, args, err));
    return set_geometry(l, args, err);
}

/* The buffer that `a` names; NULL: there is none. */
static const ptx_argument *find_linked(const ptx_launch *l, const ptx_argument *a) {
    for (size_t i = 0; i < l->argument_count; i++) {
        const ptx_argument *to = &l->arguments[i];
        if (to->parameter == a->link_to && to->field == a->link_field)
            return to->is_buffer && to->link == PTX_LINK_NONE ? to : NULL;
    }
    return NULL;
}

/* The address of the argument that `a` names, at each rank. */
static ev_status linked(const ptx_launch *all, uint32_t ranks, const ptx_argument *a,
                        uint64_t *addresses, ev_error *err) {
    for (uint32_t i = 0; i < ranks; i++) {
        const ptx_argument *to = find_linked(&all[i], a);
        if (to == NULL)
            return ev_fail(err, EV_BAD,
                           "--arg %.40s: argument %zu is no buffer; they are counted from 0",
                           a->spec, a->link_to);
        addresses[i] = device_address(all[i].device, to->buffer);
    }
    return EV_OK;
}

static ev_status link_rank(const ptx_launch *all, const ptx_launch *l, uint64_t *addresses,
                           ev_error *err) {
    for (size_t k = 0; k < l->argument_count; k++) {
        const ptx_argument *a = &l->arguments[k];
        if (a->link == PTX_LINK_NONE)
            continue;
        EV_TRY(linked(all, l->ranks, a, addresses, err));
        if (a->link == PTX_LINK_PEERS)
            EV_TRY(device_write(l->device, a->buffer, 0, addresses, l->ranks * 8ull, err));
        else
            memcpy(l->params + a->offset, &addresses[(l->rank + 1) % l->ranks], 8);
    }
    return EV_OK;
}

static ev_status link_ranks(const ptx_launch *all, uint32_t ranks, ev_error *err) {
    ev_status status = EV_OK;
    uint64_t *addresses = calloc(ranks, sizeof *addresses);
    if (addresses == NULL)
        return ev_fail_memory(err, ranks * sizeof *addresses);
    for (uint32_t i = 0; status == EV_OK && i < ranks; i++)
        status = link_rank(all, &all[i], addresses, err);
    free(addresses);
    return status;
}

static ev_status open_devices(const cli_args *args, uint32_t ranks, ptx_launch *out,
                              ev_error *err) {
    const char *id = args->values[CLI_OPT_DEVICE];
    if (ranks == 1)
        return device_open(id, &out[0].device, err);
    device **devices = calloc(ranks, sizeof(device *));
    if (devices == NULL)
        return ev_fail_memory(err, ranks * sizeof(device *));
    ev_status status = device_open_ranks(id, ranks, devices, err);
    for (uint32_t i = 0; status == EV_OK && i < ranks; i++)
        out[i].device = devices[i];
    free(devices);
    return status;
}

ev_status ptx_launch_open_ranks(const char *path, const cli_args *args, uint32_t ranks,
                                ptx_launch *out, ev_error *err) {
    for (uint32_t i = 0; i < ranks; i++)
        out[i] = (ptx_launch){.path = path, .rank = i, .ranks = ranks};
    ev_status status = open_devices(args, ranks, out, err);
    for (uint32_t i = 0; status == EV_OK && i < ranks; i++)
        status = open_parts(&out[i], args, err);
    if (status == EV_OK)
        status = link_ranks(out, ranks, err);
    for (uint32_t i = 0; status != EV_OK && i < ranks; i++)
        ptx_launch_close(&out[i]);
    return status;
}

ev_status ptx_launch_open(const char *path, const cli_args *args, ptx_launch *out, ev_error *err) {
    return ptx_launch_open_ranks(path, args, 1, out, err);
}

void ptx_launch_close(ptx_launch *l) {
    for (size_t i = 0; i < l->argument_count; i++) {
        free(l->arguments[i].data);
        free(l->arguments[i].text);
    }
    free(l->arguments);
    free(l->params);
    device_unload(l->kernel);
    device_close(l->device);
    free(l->ptx);
    *l = (ptx_launch){0};
}

static ev_status add_output(const ptx_launch *l, const ptx_argument *a, json_t *array,
                            ev_error *err) {
    unsigned char *data = malloc(a->bytes);
    if (data == NULL)
        return ev_fail_memory(err, a->bytes);
    ev_str hex = EV_STR_EMPTY;
    ev_status status = device_read(l->device, a->buffer, 0, data, a->bytes, err);
    if (status == EV_OK) {
        ev_str_hex(&hex, data, a->bytes);
        status = ev_str_status(&hex, err);
    }
    if (status == EV_OK)
        (void)json_array_append_new(array, json_string(ev_str_text(&hex)));
    ev_str_free(&hex);
    free(data);
    return status;
}

ev_status ptx_launch_outputs(const ptx_launch *l, json_t *array, ev_error *err) {
    for (size_t i = 0; i < l->argument_count; i++) {
        const ptx_argument *a = &l->arguments[i];
        if (a->is_buffer && a->kind != VM_BUFFER_IN)
            EV_TRY(add_output(l, a, array, err));
    }
    return EV_OK;
}
