/* What the machine itself has for kernels to call: printf, assert, malloc and free, as the CUDA
 * runtime declares them (vprintf, __assertfail, malloc, free). Strings are read where the kernel
 * may read them and nowhere else. */
#include "fitness/vm/vm_exec.h"

#include "base/str.h"

#include <stdio.h>
#include <string.h>

#define LONGEST_STRING (64u << 10) /* bytes of one string that are printed */
#define WIDEST 4096                /* characters of one number */

/* One lane's call. */
typedef struct system_call {
    vm_warp *w;
    const ptx_insn *ip;
    const ptx_call *call;
    unsigned lane;
} system_call;

static uint64_t argument(const system_call *c, size_t i) {
    const ptx_value *v = &c->call->args[i];
    uint64_t value = 0;
    memcpy(&value, c->w->frame->regs + v->slot + (size_t)c->lane * v->stride, v->bytes);
    return value;
}

static void give_result(const system_call *c, uint64_t value) {
    const ptx_value *v = c->call->ret_count ? &c->call->rets[0] : NULL;
    if (v && v->slot != PTX_NONE)
        memcpy(c->w->frame->regs + v->slot + (size_t)c->lane * v->stride, &value, v->bytes);
}

/* ---- reading the kernel's memory */

/* A stretch of memory that a lane may read. */
typedef struct stretch {
    const uint8_t *host;
    uint64_t bytes;
    const uint64_t *written;  /* a bit a byte from `first`; NULL: see words */
    const uint8_t *undefined; /* undefined bits of a byte (vm_undefined.c); NULL: none */
    const uint32_t *words; /* entries of writes; `first`: byte of them. Neither: all is written */
    uint64_t first;
} stretch;

static stretch global_stretch(const vm_warp *w, uint64_t address) {
    const vm_memory *m = w->state->memory;
    const vm_alloc *a = vm_memory_find(m, address, 1);
    if (!a)
        return (stretch){0};
    uint64_t offset = address - VM_GLOBAL_BASE;
    bool needs = a->kind == VM_BUFFER_OUT || a->kind == VM_BUFFER_SCRATCH;
    return (stretch){.host = m->arena + offset,
                     .bytes = a->offset + a->bytes - offset,
                     .words = needs ? m->writes : NULL,
                     .first = offset};
}

/* What can be read from a generic address; no bytes where nothing can. */
static stretch reach(const system_call *c, uint64_t address) {
    const vm_warp *w = c->w;
    uint64_t at = address & (VM_WINDOW(1) - 1), base = 0, size = 0;
    const uint8_t *host = NULL;
    const uint64_t *written = NULL;
    const uint32_t *words = NULL;
    const uint8_t *undefined = NULL;
    switch (address >> VM_WINDOW_SHIFT) {
    case 1:
        host = w->shared;
        size = w->shared_bytes;
        words = w->block->shared_writes;
        break;
    case 2:
        base = c->lane * w->local_capacity;
        host = w->local;
        size = w->frame->local_top[c->lane];
        written = w->local_written;
        undefined = w->local_undefined;
        break;
    case 3:
        host = w->state->consts;
        size = w->state->module->const_bytes;
        break;
    case 4:
        host = w->state->launch->params;
        size = w->state->entry->pub.param_bytes;
        break;
    default:
        return global_stretch(w, address);
    }
    if (at >= size)
        return (stretch){0};
    return (stretch){.host = host + base + at,
                     .bytes = size - at,
                     .written = written,
                     .undefined = undefined,
                     .words = words,
                     .first = base + at};
}

static bool is_written(const system_call *c, const stretch *s, uint64_t i) {
    uint64_t at = s->first + i;
    if (!c->w->check_init || (!s->written && !s->words))
        return true;
    return s->written ? s->written[at >> 6] >> (at & 63) & 1 : s->words[at >> 2] >> (at & 3) & 1;
}

static bool cannot_read(const system_call *c, vm_trap_kind kind, uint64_t address,
                        const char *what) {
    vm_trap_raise(
        c->w, c->ip, kind, c->lane, &address, "'%s' reads %s%s", ptx_system_name(c->call->system),
        what, kind == VM_TRAP_UNINITIALISED ? " that nothing has written" : " outside of memory");
    return false;
}

/* Whether byte i of a stretch may be read; false: a trap. */
static bool may_read(const system_call *c, const stretch *s, uint64_t address, uint64_t i,
                     const char *what) {
    if (i >= s->bytes)
        return cannot_read(c, VM_TRAP_OUT_OF_BOUNDS, address + i, what);
    if (!is_written(c, s, i))
        return cannot_read(c, VM_TRAP_UNINITIALISED, address + i, what);
    if (!s->undefined || !s->undefined[s->first + i])
        return true;
    char which[80];
    (void)snprintf(which, sizeof which, "%s of '%s'", what, ptx_system_name(c->call->system));
    vm_undefined_trap(c->w, c->ip, c->lane, which);
    return false;
}

static bool read_bytes(const system_call *c, uint64_t address, void *out, unsigned bytes) {
    stretch s = reach(c, address);
    if (!s.host || s.bytes < bytes)
        return cannot_read(c, VM_TRAP_OUT_OF_BOUNDS, address, "an argument");
    for (unsigned i = 0; i < bytes; i++)
        if (!may_read(c, &s, address, i, "an argument"))
            return false;
    memcpy(out, s.host, bytes);
    return true;
}

/* Up to `most` characters of a string; false: it leaves the memory, a trap. */
static bool read_string(const system_call *c, uint64_t address, uint64_t most, ev_str *out) {
    stretch s = reach(c, address);
    for (uint64_t i = 0; i < most; i++) {
        if (!may_read(c, &s, address, i, "a string"))
            return false;
        if (!s.host[i])
            break;
        ev_str_char(out, (char)s.host[i]);
    }
    return true;
}

/* ---- vprintf: the formats of the CUDA programming guide, "Formatted output"
 *
 * Arguments stand packed, each aligned to its size: 4 bytes, or 8 for l, ll, pointers and floating
 * point. What is no conversion is printed as it stands. */

typedef struct conversion {
    char flags[8];
    int width, precision; /* -1: not given */
    bool wide;            /* an integer of 8 bytes */
    unsigned halves;      /* h: 1, hh: 2 */
    char letter;
} conversion;

typedef struct printing {
    const system_call *c;
    uint64_t args; /* address of the next argument */
    unsigned used;
    ev_str out;
} printing;

static bool next_argument(printing *p, unsigned bytes, void *out) {
    p->args = (p->args + bytes - 1) & ~(uint64_t)(bytes - 1);
    if (!read_bytes(p->c, p->args, out, bytes))
        return false;
    p->args += bytes;
    p->used++;
    return true;
}

/* A number or *; nothing at all is -1. */
static bool read_count(printing *p, const char **at, int *out) {
    *out = -1;
    if (**at == '*') {
        int32_t v;
        ++*at;
        if (!next_argument(p, sizeof v, &v))
            return false;
        *out = v;
        if (v > WIDEST)
            *out = WIDEST;
        else if (v < -WIDEST)
            *out = -WIDEST;
        return true;
    }
    for (; **at >= '0' && **at <= '9'; ++*at)
        *out = *out >= WIDEST ? WIDEST : (*out < 0 ? 0 : *out) * 10 + (**at - '0');
    *out = *out > WIDEST ? WIDEST : *out;
    return true;
}

static void add_flag(conversion *v, char flag) {
    size_t n = strlen(v->flags);
    if (!strchr(v->flags, flag) && n + 1 < sizeof v->flags) {
        v->flags[n] = flag;
        v->flags[n + 1] = 0;
    }
}

/* Reads what follows a %; letter 0: no conversion. */
static bool read_conversion(printing *p, const char **at, conversion *v) {
    *v = (conversion){.precision = -1};
    for (; **at && strchr("-+ #0", **at); ++*at)
        add_flag(v, **at);
    if (!read_count(p, at, &v->width))
        return false;
    if (v->width < -1) {
        add_flag(v, '-');
        v->width = -v->width;
    }
    if (**at == '.') {
        ++*at;
        if (!read_count(p, at, &v->precision))
            return false;
        if (v->precision < 0 && (*at)[-1] == '.')
            v->precision = 0;
    }
    for (; **at && strchr("hlzjt", **at); ++*at) {
        v->wide |= **at != 'h';
        v->halves += **at == 'h';
    }
    if (**at && strchr("diuoxXcspfFeEgGaA%", **at))
        v->letter = *(*at)++;
    return true;
}

static void make_format(const conversion *v, const char *size, char *out, size_t bytes) {
    (void)snprintf(out, bytes, "%%%s%s%s%s%c", v->flags, v->width >= 0 ? "*" : "",
                   v->precision >= 0 ? ".*" : "", size, v->letter);
}

/* Prints one value through a format made of checked parts. */
#define PRINT_AS(p, v, format, value)                                                              \
    ((v)->width >= 0 && (v)->precision >= 0                                                        \
         ? snprintf(text, sizeof text, format, (v)->width, (v)->precision, value)                  \
     : (v)->width >= 0     ? snprintf(text, sizeof text, format, (v)->width, value)                \
     : (v)->precision >= 0 ? snprintf(text, sizeof text, format, (v)->precision, value)            \
                           : snprintf(text, sizeof text, format, value))

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"

static bool print_integer(printing *p, const conversion *v) {
    char format[32], text[WIDEST + 512];
    uint64_t bits = 0;
    if (!next_argument(p, v->wide ? 8 : 4, &bits))
        return false;
    bool is_signed = v->letter == 'd' || v->letter == 'i';
    unsigned width = 32;
    if (v->wide)
        width = 64;
    else if (v->halves >= 2)
        width = 8;
    else if (v->halves)
        width = 16;
    bits <<= 64 - width;
    long long value = (long long)bits >> (64 - width);
    make_format(v, "ll", format, sizeof format);
    if (is_signed)
        (void)PRINT_AS(p, v, format, value);
    else
        (void)PRINT_AS(p, v, format, (unsigned long long)(bits >> (64 - width)));
    ev_str_append(&p->out, text);
    return true;
}

static bool print_float(printing *p, const conversion *v) {
    char format[32], text[2 * WIDEST];
    double value;
    if (!next_argument(p, sizeof value, &value))
        return false;
    make_format(v, "", format, sizeof format);
    (void)PRINT_AS(p, v, format, value);
    ev_str_append(&p->out, text);
    return true;
}

static bool print_pointer(printing *p, const conversion *v) {
    char format[32], text[WIDEST + 64];
    uint64_t value;
    if (!next_argument(p, sizeof value, &value))
        return false;
    make_format(v, "", format, sizeof format);
    (void)PRINT_AS(p, v, format, (void *)(uintptr_t)value); /* NOLINT: only its number is printed */
    ev_str_append(&p->out, text);
    return true;
}

#pragma GCC diagnostic pop

static void pad(printing *p, const conversion *v, size_t used, bool left) {
    bool is_left = strchr(v->flags, '-') != NULL;
    for (size_t i = used; is_left == left && v->width >= 0 && i < (size_t)v->width; i++)
        ev_str_char(&p->out, ' ');
}

static bool print_string(printing *p, const conversion *v) {
    uint64_t address;
    if (!next_argument(p, sizeof address, &address))
        return false;
    ev_str text = EV_STR_EMPTY;
    uint64_t most = v->precision >= 0 ? (uint64_t)v->precision : LONGEST_STRING;
    bool ok = true;
    if (address)
        ok = read_string(p->c, address, most, &text);
    else
        ev_str_append(&text, "(null)");
    if (ok) {
        pad(p, v, text.length, false);
        ev_str_append(&p->out, ev_str_text(&text));
        pad(p, v, text.length, true);
    }
    ev_str_free(&text);
    return ok;
}

static bool print_character(printing *p, const conversion *v) {
    uint32_t value;
    if (!next_argument(p, sizeof value, &value))
        return false;
    pad(p, v, 1, false);
    ev_str_char(&p->out, (char)value);
    pad(p, v, 1, true);
    return true;
}

static bool print_conversion(printing *p, const char **at) {
    const char *begin = *at - 1;
    conversion v;
    if (!read_conversion(p, at, &v))
        return false;
    switch (v.letter) {
    case 0: /* none: as it stands */
        ev_str_append_n(&p->out, begin, (size_t)(*at - begin));
        return true;
    case '%':
        ev_str_char(&p->out, '%');
        return true;
    case 'c':
        return print_character(p, &v);
    case 's':
        return print_string(p, &v);
    case 'p':
        return print_pointer(p, &v);
    default:
        return strchr("diuoxX", v.letter) ? print_integer(p, &v) : print_float(p, &v);
    }
}

static bool print_format(printing *p, const char *format) {
    for (const char *at = format; *at;) {
        const char *next = strchr(at, '%');
        size_t plain = next ? (size_t)(next - at) : strlen(at);
        ev_str_append_n(&p->out, at, plain);
        at += plain;
        if (*at++ != '%')
            break;
        if (!print_conversion(p, &at))
            return false;
    }
    return true;
}

static bool call_vprintf(const system_call *c) {
    uint64_t address = argument(c, 0);
    if (!address) {
        give_result(c, UINT32_MAX); /* -1, as the guide says */
        return true;
    }
    ev_str format = EV_STR_EMPTY;
    printing p = {.c = c, .args = argument(c, 1), .out = EV_STR_EMPTY};
    bool ok =
        read_string(c, address, LONGEST_STRING, &format) && print_format(&p, ev_str_text(&format));
    const vm_launch *l = c->w->state->launch;
    if (ok && l->print)
        l->print(l->print_context, ev_str_text(&p.out), p.out.length);
    if (ok)
        give_result(c, p.used);
    ev_str_free(&format);
    ev_str_free(&p.out);
    return ok;
}

/* ---- the others */

static bool call_assertfail(const system_call *c) {
    ev_str text[3] = {EV_STR_EMPTY, EV_STR_EMPTY, EV_STR_EMPTY};
    static const unsigned which[] = {0, 1, 3};
    bool ok = true;
    for (unsigned i = 0; i < 3 && ok; i++)
        if (argument(c, which[i]))
            ok = read_string(c, argument(c, which[i]), 160, &text[i]);
    if (ok)
        vm_trap_raise(c->w, c->ip, VM_TRAP_ASSERTION, c->lane, NULL,
                      "%.160s:%u: %.120s: assertion '%.120s' failed", ev_str_text(&text[1]),
                      (uint32_t)argument(c, 2), ev_str_text(&text[2]), ev_str_text(&text[0]));
    for (unsigned i = 0; i < 3; i++)
        ev_str_free(&text[i]);
    return false;
}

static bool call_malloc(const system_call *c) {
    give_result(c, vm_heap_alloc(c->w->state->memory, argument(c, 0)));
    return !c->w->state->memory->out_of_memory;
}

static bool call_free(const system_call *c) {
    uint64_t address = argument(c, 0);
    vm_state *s = c->w->state;
    if (!address)
        return true;
    if (!vm_heap_free(s->memory, address)) {
        vm_trap_raise(c->w, c->ip, VM_TRAP_OUT_OF_BOUNDS, c->lane, &address,
                      "a free of memory that malloc did not give, or that is free already");
        return false;
    }
    memset(s->segments, 0, (s->module->site_count + 1) * sizeof *s->segments);
    return true;
}

bool vm_system_call(vm_warp *w, const ptx_insn *ip, uint32_t mask) {
    static bool (*const calls[])(const system_call *) = {[PTX_SYS_VPRINTF] = call_vprintf,
                                                         [PTX_SYS_ASSERTFAIL] = call_assertfail,
                                                         [PTX_SYS_MALLOC] = call_malloc,
                                                         [PTX_SYS_FREE] = call_free};
    system_call c = {.w = w, .ip = ip, .call = &w->state->module->calls[ip->target]};
    w->state->happenings++;
    for (uint32_t left = mask; left; left &= left - 1) {
        c.lane = (unsigned)__builtin_ctz(left);
        if (!calls[c.call->system](&c))
            return false;
    }
    return true;
}
