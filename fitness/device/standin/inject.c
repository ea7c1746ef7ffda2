/* Errors on demand: EVOKE_STANDIN_FAIL="cuMemAlloc_v2:3=2;launch:5=timeout" makes the third call of
 * cuMemAlloc answer 2, and the fifth kernel time out. "3+" means from the third on; a word stands
 * for an error's number (see WORDS), or the error's own name does. Calls are counted since the
 * variable last changed. With EVOKE_STANDIN_ONCE=FILE an error happens in one process: this makes
 * FILE, and processes that start later have no rules. */
#include "fitness/device/standin/standin.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* No numbers of the driver's, and no errors. */
#define HANG 1000000 /* the kernel never ends */
#define SLOW 1000001 /* the SM clock drops, for kernels from then on */
#define FAST 1000002 /* it is back */

#define SLOW_SHARE 0.5 /* of the full SM clock */

static const char *const NAMES[SD_FN_COUNT] = {
#define CU_FN(symbol, name, since, scope, need, params, args) #symbol,
#include "base/cuda/driver.def"
#undef CU_FN
    "launch",
};

typedef struct word {
    const char *text;
    int number;
} word;

static const word WORDS[] = {
    {"memory", CUDA_ERROR_OUT_OF_MEMORY},
    {"timeout", CUDA_ERROR_LAUNCH_TIMEOUT},
    {"address", CUDA_ERROR_ILLEGAL_ADDRESS},
    {"jit", CUDA_ERROR_INVALID_PTX},
    {"lost", CUDA_ERROR_DEVICE_UNAVAILABLE},
    {"hang", HANG},
    {"slow", SLOW},
    {"fast", FAST},
#define CU_ERROR(id, number, words) {#id, number},
#include "base/cuda/errors.def"
#undef CU_ERROR
};

static int number_of(const char *text, size_t length) {
    for (size_t i = 0; i < sizeof WORDS / sizeof WORDS[0]; i++) {
        if (strlen(WORDS[i].text) == length && memcmp(WORDS[i].text, text, length) == 0)
            return WORDS[i].number;
    }
    return (int)strtol(text, NULL, 10);
}

/* Whether this rule ("NAME:COUNT[+]=ERROR", up to `end`) means call `count` of `fn`. */
static int rule_means(const char *rule, const char *end, sd_fn fn, unsigned long count) {
    size_t length = strlen(NAMES[fn]);
    if ((size_t)(end - rule) <= length || memcmp(rule, NAMES[fn], length) != 0 ||
        rule[length] != ':')
        return 0;
    char *after = NULL;
    unsigned long wanted = strtoul(rule + length + 1, &after, 10);
    bool on = *after == '+';
    after += on;
    if (*after != '=' || !(count == wanted || (on && count > wanted)))
        return 0;
    return number_of(after + 1, (size_t)(end - after - 1));
}

/* Under the lock. */
static struct {
    char *rules; /* that the rest is about */
    pid_t process;
    bool is_over; /* another process had the fault */
    unsigned long counts[SD_FN_COUNT];
    bool hangs; /* the last launch is to */
    bool slow;
} injection;

bool sd_injected_hang(void) {
    return injection.hangs;
}

double sd_clock_share(void) {
    return injection.slow ? SLOW_SHARE : 1;
}

/* New rules: nothing has happened yet. */
static void heed(const char *rules) {
    const char *once = getenv("EVOKE_STANDIN_ONCE");
    if (injection.rules != NULL && strcmp(rules, injection.rules) == 0 &&
        injection.process == getpid())
        return;
    free(injection.rules);
    memset(&injection, 0, sizeof injection);
    injection.rules = strdup(rules);
    injection.process = getpid();
    injection.is_over = once != NULL && access(once, F_OK) == 0;
}

static void note_fault(void) {
    const char *once = getenv("EVOKE_STANDIN_ONCE");
    int made = once != NULL ? open(once, O_WRONLY | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (made >= 0)
        (void)close(made);
}

CUresult sd_injected(sd_fn fn) {
    const char *rules = getenv("EVOKE_STANDIN_FAIL");
    int found = 0;
    rules = rules != NULL ? rules : "";
    heed(rules);
    unsigned long count = ++injection.counts[fn];
    while (*rules != '\0' && found == 0 && !injection.is_over) {
        const char *end = rules + strcspn(rules, ";");
        found = rule_means(rules, end, fn, count);
        rules = *end == ';' ? end + 1 : end;
    }
    if (found != 0 && found != SLOW && found != FAST)
        note_fault();
    if (fn == SD_FN_LAUNCH)
        injection.hangs = found == HANG;
    if (found == SLOW || found == FAST)
        injection.slow = found == SLOW;
    if (found >= HANG)
        return CUDA_SUCCESS;
    if (found == CUDA_ERROR_DEVICE_UNAVAILABLE)
        sd_get()->lost = CUDA_ERROR_DEVICE_UNAVAILABLE; /* and never comes back */
    return (CUresult)found;
}
