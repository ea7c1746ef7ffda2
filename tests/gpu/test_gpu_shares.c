/* Shares of work: those that found no room are tried again with fewer processes at once. */
#include "tests/gpu/shares.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define COUNT 8u

/* What the processes of a test have in common. */
typedef struct room {
    atomic_uint inside, most, tries;
    unsigned places; /* more processes at once find none */
    bool is_broken;  /* a share fails for good */
} room;

typedef struct run {
    room *r;
    char taken[200];
} run;

static ev_status work(void *context, unsigned share, ev_str *out, bool *again, ev_error *err) {
    room *r = ((run *)context)->r;
    unsigned inside = atomic_fetch_add(&r->inside, 1) + 1, most = atomic_load(&r->most);
    while (inside > most && !atomic_compare_exchange_weak(&r->most, &most, inside))
        continue;
    (void)atomic_fetch_add(&r->tries, 1);
    (void)usleep(20000);
    (void)atomic_fetch_sub(&r->inside, 1);
    if (r->is_broken && share == 2)
        return ev_fail(err, EV_BAD, "share 2 is broken");
    *again = inside > r->places;
    if (*again)
        return ev_fail(err, EV_INFRA, "no room");
    ev_str_printf(out, "%u ", share);
    return EV_OK;
}

static ev_status take(void *context, const ev_str *out, ev_error *err) {
    run *r = context;
    (void)err;
    strncat(r->taken, ev_str_text(out), sizeof r->taken - strlen(r->taken) - 1);
    return EV_OK;
}

static ev_status run_in(run *r, unsigned places, bool is_broken, ev_error *err) {
    memset(r->r, 0, sizeof *r->r);
    r->r->places = places;
    r->r->is_broken = is_broken;
    r->taken[0] = '\0';
    const shares all = {.context = r, .count = COUNT, .work = work, .take = take};
    return shares_run(&all, err);
}

/* However few find room at once, each share is taken once, in order. */
static void takes_every_share(void **state) {
    run r = {.r = *state};
    ev_error err = {0};
    for (unsigned places = 1; places <= COUNT; places++) {
        assert_int_equal(run_in(&r, places, false, &err), EV_OK);
        assert_string_equal(r.taken, "0 1 2 3 4 5 6 7 ");
        assert_true(atomic_load(&r.r->tries) >= COUNT && atomic_load(&r.r->most) <= COUNT);
    }
}

/* Where no process ever finds room, there is an end; a failure for good is not tried again. */
static void gives_up(void **state) {
    run r = {.r = *state};
    ev_error err = {0};
    assert_int_equal(run_in(&r, 0, false, &err), EV_INFRA);
    assert_string_equal(err.text, "no room");
    assert_string_equal(r.taken, "");
    assert_int_equal(atomic_load(&r.r->tries), 4 * COUNT); /* 8, 4, 2 at once, one by one */
    assert_int_equal(run_in(&r, COUNT, true, &err), EV_BAD);
    assert_string_equal(err.text, "share 2 is broken");
    assert_string_equal(r.taken, "0 1 3 4 5 6 7 ");
    assert_int_equal(atomic_load(&r.r->tries), COUNT);
}

static int open_room(void **state) {
    *state = mmap(NULL, sizeof(room), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return *state == MAP_FAILED;
}

static int close_room(void **state) {
    return munmap(*state, sizeof(room));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_every_share),
        cmocka_unit_test(gives_up),
    };
    return cmocka_run_group_tests(tests, open_room, close_room);
}
