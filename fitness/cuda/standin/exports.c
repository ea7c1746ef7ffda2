/* What libcuda.so.1 exports: one function a row of driver.def, each a lock around its
 * implementation, and the look-up of functions by name. */
#include "fitness/cuda/standin/standin.h"

#include <string.h>

#define EXPORT __attribute__((visibility("default")))

#define CU_FN(symbol, name, since, scope, need, params, args) EXPORT CUresult symbol params;
#include "fitness/cuda/driver.def"
#undef CU_FN

#define CU_FN(symbol, name, since, scope, need, params, args)                                      \
    CUresult symbol params {                                                                       \
        CUresult entered = sd_enter(SD_FN_##symbol, SD_##scope);                                   \
        return entered != CUDA_SUCCESS ? entered : sd_leave(sd_##symbol args);                     \
    }
#include "fitness/cuda/driver.def"
#undef CU_FN

typedef void sd_any(void);

typedef struct sd_row {
    const char *name;
    int since;
    sd_any *function;
} sd_row;

static const sd_row ROWS[] = {
#define CU_FN(symbol, name, since, scope, need, params, args) {#name, since, (sd_any *)symbol},
#include "fitness/cuda/driver.def"
#undef CU_FN
};

/* The newest ABI of a name that `version` has. */
static const sd_row *find_row(const char *name, int version, bool *known) {
    const sd_row *best = NULL;
    *known = false;
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        if (strcmp(ROWS[i].name, name) != 0)
            continue;
        *known = true;
        if (ROWS[i].since <= version && (best == NULL || ROWS[i].since > best->since))
            best = &ROWS[i];
    }
    return best;
}

enum { FOUND = 0, NO_SUCH_SYMBOL = 1, VERSION_TOO_OLD = 2 };

CUresult sd_cuGetProcAddress_v2(const char *symbol, void **out, int version, uint64_t flags,
                                int *status) {
    (void)flags;
    if (symbol == NULL || out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    bool known = false;
    const sd_row *row = find_row(symbol, version, &known);
    int missing = known ? VERSION_TOO_OLD : NO_SUCH_SYMBOL;
    if (status != NULL)
        *status = row != NULL ? FOUND : missing;
    *out = NULL;
    if (row == NULL)
        return CUDA_ERROR_NOT_FOUND;
    memcpy(out, &row->function, sizeof *out);
    return CUDA_SUCCESS;
}

CUresult sd_cuGetProcAddress(const char *symbol, void **out, int version, uint64_t flags) {
    return sd_cuGetProcAddress_v2(symbol, out, version, flags, NULL);
}

/* ---- errors ---- */

typedef struct sd_error {
    CUresult number;
    const char *name, *words;
} sd_error;

static const sd_error ERRORS[] = {
#define CU_ERROR(id, number, words) {id, #id, words},
#include "fitness/cuda/errors.def"
#undef CU_ERROR
};

static const sd_error *find_error(CUresult error) {
    for (size_t i = 0; i < sizeof ERRORS / sizeof ERRORS[0]; i++) {
        if (ERRORS[i].number == error)
            return &ERRORS[i];
    }
    return NULL;
}

CUresult sd_cuGetErrorName(CUresult error, const char **out) {
    const sd_error *e = find_error(error);
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *out = e != NULL ? e->name : NULL;
    return e != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sd_cuGetErrorString(CUresult error, const char **out) {
    const sd_error *e = find_error(error);
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *out = e != NULL ? e->words : NULL;
    return e != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
