/* libFuzzer target: kernels made out of the instruction table load, disassemble and run alike
 * everywhere. */
#include "tests/fuzz/kernel_check.h"

#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *wrong = kernel_check(data, size);
    if (wrong) {
        fprintf(stderr, "%s\n", wrong);
        __builtin_trap();
    }
    return 0;
}
