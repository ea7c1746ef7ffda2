/* What libcuda.so.1 exports: one function a row of driver.def, each a lock around its
 * implementation; one a row of names.def, which answers that it is not supported, or is another
 * name of the former; and the look-up of functions by name. */
#include "fitness/device/standin/standin.h"

#include <stdatomic.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

#define CU_FN(symbol, name, since, scope, need, params, args) EXPORT CUresult symbol params;
#include "base/cuda/driver.def"
#undef CU_FN

#define CU_FN(symbol, name, since, scope, need, params, args)                                      \
    CUresult symbol params {                                                                       \
        CUresult entered = sd_enter(SD_FN_##symbol, SD_##scope);                                   \
        return entered != CUDA_SUCCESS ? entered : sd_leave(sd_##symbol args);                     \
    }
#include "base/cuda/driver.def"
#undef CU_FN

#define CU_NAME(symbol, name, since) EXPORT CUresult symbol(void);
#define CU_ALIAS(symbol, name, since, body)                                                        \
    EXPORT __typeof__(body) symbol __attribute__((alias(#body)));
#include "fitness/device/standin/names.def"
#undef CU_NAME
#undef CU_ALIAS

#define CU_NAME(symbol, name, since)                                                               \
    CUresult symbol(void) {                                                                        \
        static atomic_flag said = ATOMIC_FLAG_INIT;                                                \
        if (!atomic_flag_test_and_set(&said))                                                      \
            sd_say("%s: not supported (docs/standin.md lists what is)", #symbol);                  \
        return CUDA_ERROR_NOT_SUPPORTED;                                                           \
    }
#define CU_ALIAS(symbol, name, since, body)
#include "fitness/device/standin/names.def"
#undef CU_NAME
#undef CU_ALIAS

typedef void sd_any(void);

typedef struct sd_row {
    const char *symbol, *name;
    int since;
    sd_any *function;
} sd_row;

static const sd_row ROWS[] = {
#define CU_FN(symbol, name, since, scope, need, params, args)                                      \
    {#symbol, #name, since, (sd_any *)symbol},
#include "base/cuda/driver.def"
#undef CU_FN
#define CU_NAME(symbol, name, since) {#symbol, #name, since, (sd_any *)symbol},
#define CU_ALIAS(symbol, name, since, body) {#symbol, #name, since, (sd_any *)symbol},
#include "fitness/device/standin/names.def"
#undef CU_NAME
#undef CU_ALIAS
};

/* ..._ptsz and ..._ptds, whose default stream is each thread's own. */
static bool is_per_thread(const sd_row *row) {
    size_t length = strlen(row->symbol);
    return length > 5 && (strcmp(row->symbol + length - 5, "_ptsz") == 0 ||
                          strcmp(row->symbol + length - 5, "_ptds") == 0);
}

/* The newest ABI of a name that `version` has. */
static const sd_row *find_row(const char *name, int version, bool per_thread, bool *known) {
    const sd_row *best = NULL;
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        if (strcmp(ROWS[i].name, name) != 0 || is_per_thread(&ROWS[i]) != per_thread)
            continue;
        *known = true;
        if (ROWS[i].since <= version && (best == NULL || ROWS[i].since > best->since))
            best = &ROWS[i];
    }
    return best;
}

enum { FOUND = 0, NO_SUCH_SYMBOL = 1, VERSION_TOO_OLD = 2, PER_THREAD_DEFAULT_STREAM = 2 };

/* An unknown name is an answer, not an error: Driver API, "Driver Entry Point Access". */
CUresult sd_cuGetProcAddress_v2(const char *symbol, void **out, int version, uint64_t flags,
                                int *status) {
    if (symbol == NULL || out == NULL || version > sd_driver()->cuda)
        return CUDA_ERROR_INVALID_VALUE;
    bool known = false;
    const sd_row *row =
        flags & PER_THREAD_DEFAULT_STREAM ? find_row(symbol, version, true, &known) : NULL;
    if (row == NULL)
        row = find_row(symbol, version, false, &known);
    int missing = known ? VERSION_TOO_OLD : NO_SUCH_SYMBOL;
    if (status != NULL)
        *status = row != NULL ? FOUND : missing;
    *out = NULL;
    if (row != NULL)
        memcpy(out, &row->function, sizeof *out);
    return CUDA_SUCCESS;
}

/* The first version has no status, and so an error. */
CUresult sd_cuGetProcAddress(const char *symbol, void **out, int version, uint64_t flags) {
    CUresult result = sd_cuGetProcAddress_v2(symbol, out, version, flags, NULL);
    return result == CUDA_SUCCESS && *out == NULL ? CUDA_ERROR_NOT_FOUND : result;
}

/* Tables of functions that NVIDIA's libraries share in private: there are none. */
CUresult sd_cuGetExportTable(const void **table, const CUuuid *id) {
    if (table == NULL || id == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *table = NULL;
    ev_str name = EV_STR_EMPTY;
    ev_str_hex(&name, id->bytes, sizeof id->bytes);
    sd_record_line("tables", "%s", ev_str_text(&name));
    ev_str_free(&name);
    return CUDA_ERROR_NOT_FOUND;
}

/* ---- errors ---- */

typedef struct sd_error {
    CUresult number;
    const char *name, *words;
} sd_error;

static const sd_error ERRORS[] = {
#define CU_ERROR(id, number, words) {id, #id, words},
#include "base/cuda/errors.def"
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
