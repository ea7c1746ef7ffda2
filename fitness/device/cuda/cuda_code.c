/* Machine code by ptxas, kept by the hash of its text: a check loads a kernel once a case, and
 * ptxas takes longer than most cases. Only what ptxas made is kept, so a failure is tried again. */
#include "fitness/device/cuda/cuda.h"

#include <stdlib.h>
#include <string.h>

static cuda_code *find(cuda_codes *kept, const ev_sha256 *text) {
    for (size_t i = 0; i < CUDA_CODES; i++) {
        cuda_code *code = &kept->of[i];
        if (code->used > 0 && ev_sha256_equal(&code->text, text))
            return code;
    }
    return NULL;
}

/* A free one, or the one whose last use is longest ago. */
static cuda_code *oldest(cuda_codes *kept) {
    cuda_code *found = &kept->of[0];
    for (size_t i = 1; i < CUDA_CODES; i++)
        found = kept->of[i].used < found->used ? &kept->of[i] : found;
    return found;
}

static void drop(cuda_code *code) {
    ev_str_free(&code->cubin);
    ev_str_free(&code->log);
    *code = (cuda_code){.used = 0};
}

static void keep(cuda_codes *kept, const ev_sha256 *text, const ev_str *cubin, const ev_str *log) {
    cuda_code *code = oldest(kept);
    ev_error ignored;
    drop(code);
    ev_str_append_n(&code->cubin, ev_str_text(cubin), cubin->length);
    ev_str_append_n(&code->log, ev_str_text(log), log->length);
    code->text = *text;
    code->used = ++kept->uses;
    if (ev_str_status(&code->cubin, &ignored) != EV_OK ||
        ev_str_status(&code->log, &ignored) != EV_OK)
        drop(code);
}

ev_status cuda_code_get(cuda_codes *kept, const ptxas *p, const char *ptx, int sm, ev_str *cubin,
                        ev_str *log, bool *deadly, ev_error *err) {
    ev_sha256 text = ev_sha256_of(ptx, strlen(ptx));
    cuda_code *known = find(kept, &text);
    *deadly = false;
    if (known == NULL) {
        ev_status status = ptxas_run(p, ptx, sm, cubin, log, deadly, err);
        if (status == EV_OK)
            keep(kept, &text, cubin, log);
        return status;
    }
    known->used = ++kept->uses;
    ev_str_append_n(cubin, ev_str_text(&known->cubin), known->cubin.length);
    ev_str_append_n(log, ev_str_text(&known->log), known->log.length);
    EV_TRY(ev_str_status(cubin, err));
    return ev_str_status(log, err);
}

void cuda_codes_free(cuda_codes *kept) {
    for (size_t i = 0; i < CUDA_CODES; i++)
        drop(&kept->of[i]);
}
