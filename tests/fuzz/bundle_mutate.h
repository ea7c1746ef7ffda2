/* Mutations of a bundle's tar for fuzzing: archive, manifest and files are changed as an attacker
 * would, and check sums and hashes are put right again, so that what lies behind them is reached.
 */
#ifndef TESTS_FUZZ_BUNDLE_MUTATE_H
#define TESTS_FUZZ_BUNDLE_MUTATE_H

#include "base/pcg.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Changes `data` in place, within `room` bytes. Returns the new size; 0: it is no tar, or the
 * result does not fit. */
size_t bundle_mutate(uint8_t *data, size_t size, size_t room, ev_pcg *rng);
/* Changes one place of a JSON tree (bundle_mutate_json.c). */
void bundle_mutate_json(json_t *root, ev_pcg *rng);

#endif
