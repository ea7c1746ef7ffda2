/* Writes what the fuzz targets start from: fuzz_corpus FOLDER GOLDENS.txt|MODULE.ptx ...
 *
 *   FOLDER/ptx       a module an instruction of the goldens, and each module given
 *   FOLDER/vm        bytes that make kernels, some for each row of the table
 *   FOLDER/ptx.dict  the words of the tables, for -dict= */
#include "base/file.h"
#include "base/pcg.h"
#include "base/str.h"
#include "fitness/ptx/ptx.h"
#include "tests/fitness/ptx/golden_parse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VM_SEEDS_A_ROW 1
#define VM_SEED_BYTES 400

static ev_status write_text(const char *folder, const char *name, unsigned number, ev_str *s,
                            ev_error *err) {
    char path[1000];
    snprintf(path, sizeof path, "%s/%s%05u", folder, name, number);
    ev_status status = ev_file_write(path, ev_str_text(s), s->length, err);
    ev_str_free(s);
    return status;
}

/* ---- modules */

static ev_status write_goldens(const char *path, const char *folder, unsigned *number,
                               ev_error *err) {
    ev_arena *arena = ev_arena_new();
    golden_file file = {0};
    if (!arena)
        return ev_fail_memory(err, 1);
    ev_status status = golden_read(path, arena, &file, err);
    for (size_t i = 0; status == EV_OK && i < file.count; i++) {
        ev_str s = golden_module(&file.insns[i]);
        status = write_text(folder, "golden", (*number)++, &s, err);
    }
    ev_arena_free(arena);
    return status;
}

static ev_status copy_module(const char *path, const char *folder, unsigned *number,
                             ev_error *err) {
    char *text = NULL;
    size_t bytes;
    EV_TRY(ev_file_read(path, &text, &bytes, err));
    ev_str s = EV_STR_EMPTY;
    ev_str_append_n(&s, text, bytes);
    free(text);
    return write_text(folder, "module", (*number)++, &s, err);
}

/* ---- bytes of kernels: see kernel_text.c for what each draw decides */

static ev_status write_kernels(const char *folder, ev_error *err) {
    ev_pcg rng = ev_pcg_seed(1, 13);
    unsigned number = 0;
    for (unsigned row = 0; row < PTX_OP_COUNT; row++)
        for (unsigned k = 0; k < VM_SEEDS_A_ROW; k++) {
            ev_str s = EV_STR_EMPTY;
            ev_str_char(&s, (char)ev_pcg_below(&rng, 24));
            ev_str_char(&s, 0); /* no label first */
            if (PTX_OP_COUNT > 256)
                ev_str_char(&s, (char)(row >> 8));
            ev_str_char(&s, (char)row);
            for (unsigned i = 0; i < VM_SEED_BYTES; i++)
                ev_str_char(&s, (char)ev_pcg_below(&rng, 256));
            EV_TRY(write_text(folder, "kernel", number++, &s, err));
        }
    return EV_OK;
}

/* ---- words */

static ev_status write_dictionary(const char *path, ev_error *err) {
    static const char *const others[] = {".version",
                                         ".target",
                                         ".address_size",
                                         ".visible",
                                         ".entry",
                                         ".func",
                                         ".param",
                                         ".reg",
                                         ".local",
                                         ".shared",
                                         ".global",
                                         ".const",
                                         ".extern",
                                         ".align",
                                         ".maxntid",
                                         ".reqntid",
                                         ".maxnreg",
                                         ".loc",
                                         ".file",
                                         ".section",
                                         ".pragma",
                                         ".b8",
                                         "[",
                                         "]",
                                         "{",
                                         "}",
                                         "<4>",
                                         "@%p1",
                                         "@!%p1",
                                         "0f",
                                         "0d",
                                         "0x",
                                         "generic",
                                         "inlined_at",
                                         "bra",
                                         "sm_90",
                                         "sm_20",
                                         "8.5",
                                         ".ptr",
                                         ".weak",
                                         ".branchtargets"};
    ev_str s = EV_STR_EMPTY;
    for (unsigned row = 0; row < PTX_OP_COUNT; row++)
        if (*ptx_op_get(row)->name != '(')
            ev_str_printf(&s, "\"%s\"\n", ptx_op_get(row)->name);
    for (unsigned t = 1; t < PTX_T_COUNT; t++)
        ev_str_printf(&s, "\".%s\"\n", ptx_type_name((ptx_type)t));
    for (unsigned m = 1; m < PTX_M_COUNT; m++)
        ev_str_printf(&s, "\".%s\"\n", ptx_mod_text((ptx_mod)m));
    for (unsigned r = 0; r < PTX_SR_COUNT; r++)
        ev_str_printf(&s, "\"%s\"\n", ptx_sreg_text((ptx_sreg)r));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        ev_str_printf(&s, "\"%s\"\n", others[i]);
    ev_status status = ev_file_write(path, ev_str_text(&s), s.length, err);
    ev_str_free(&s);
    return status;
}

static ev_status write_all(const char *folder, char **paths, int count, ev_error *err) {
    char ptx[900], vm[900], words[900];
    snprintf(ptx, sizeof ptx, "%s/ptx", folder);
    snprintf(vm, sizeof vm, "%s/vm", folder);
    snprintf(words, sizeof words, "%s/ptx.dict", folder);
    EV_TRY(ev_dir_make(folder, err));
    EV_TRY(ev_dir_make(ptx, err));
    EV_TRY(ev_dir_make(vm, err));
    unsigned number = 0;
    for (int i = 0; i < count; i++) {
        size_t length = strlen(paths[i]);
        bool goldens = length > 4 && strcmp(paths[i] + length - 4, ".txt") == 0;
        EV_TRY(goldens ? write_goldens(paths[i], ptx, &number, err)
                       : copy_module(paths[i], ptx, &number, err));
    }
    EV_TRY(write_kernels(vm, err));
    return write_dictionary(words, err);
}

int main(int argc, char **argv) {
    ev_error err = {0};
    if (argc < 2) {
        fprintf(stderr, "usage: fuzz_corpus FOLDER GOLDENS.txt|MODULE.ptx ...\n");
        return 2;
    }
    if (write_all(argv[1], argv + 2, argc - 2, &err) == EV_OK)
        return 0;
    fprintf(stderr, "fuzz_corpus: %s\n", err.text);
    return 3;
}
