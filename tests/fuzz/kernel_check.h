/* What must hold of every kernel, however strange. */
#ifndef TESTS_FUZZ_KERNEL_CHECK_H
#define TESTS_FUZZ_KERNEL_CHECK_H

#include <stddef.h>
#include <stdint.h>

/* Makes a kernel of the bytes (kernel_text.h) and loads it, leaving out what the loader refuses;
 * then checks that
 *   - each refusal names a place and says what was expected,
 *   - its disassembly loads to the same code,
 *   - each instruction set gives the same result, trap, counters and memory, and so does a second
 *     run, under several schedules.
 * NULL if all that holds; else what does not, with the text; the caller frees it. */
char *kernel_check(const uint8_t *data, size_t size);

#endif
