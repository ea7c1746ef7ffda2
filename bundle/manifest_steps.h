/* The key "launch" of a variant, for manifest.c. */
#ifndef BUNDLE_MANIFEST_STEPS_H
#define BUNDLE_MANIFEST_STEPS_H

#include "base/launch_plan.h"

#include <jansson.h>

/* A new reference. Takes `macros` over. The plan has no hidden parameters. */
json_t *manifest_launch(const launch_plan *plan, json_t *macros);

#endif
