/* The task of an all-reduce, in pieces, for the tests of tasks with ranks. */
#ifndef TESTS_TUNER_CLI_COLLECTIVE_RIG_H
#define TESTS_TUNER_CLI_COLLECTIVE_RIG_H

#include "base/json.h"

/* Up to the stage; tables of it follow, or none. */
#define SUM_UP_BEGIN                                                                               \
    "{\"name\": \"sum_up\", \"family\": \"f\", \"doc\": \"d\", \"ranks\": \"ranks\",\n"            \
    " \"arguments\": [\n"                                                                          \
    "  {\"name\": \"input\", \"kind\": \"in\", \"type\": \"f32\", \"count\": \"n\",\n"             \
    "   \"data\": {\"generator\": \"normal\"}},\n"                                                 \
    "  {\"name\": \"output\", \"kind\": \"out\", \"type\": \"f32\", \"count\": \"n\"},\n"          \
    "  {\"name\": \"stage\", \"kind\": \"inout\", \"type\": \"f32\", \"count\": "                  \
    "\"8 * ceil_div(n, 4)\",\n"                                                                    \
    "   \"by_rank\": true, \"data\": {\"generator\": \"normal\"}},\n"

/* Flags, and scalars; the starts follow. */
#define SUM_UP_ARGUMENTS                                                                           \
    "  {\"name\": \"flags\", \"kind\": \"inout\", \"type\": \"u32\", \"initial\": \"constant\",\n" \
    "   \"count\": \"ceil_div(n, 64) * ranks\",\n"                                                 \
    "   \"data\": {\"generator\": \"constant\", \"value\": \"epoch - 1\"},\n"                      \
    "   \"domain\": {\"min\": \"epoch - 1\", \"max\": \"epoch - 1\"}},\n"                          \
    "  {\"name\": \"all_flags\", \"kind\": \"peers\", \"of\": \"flags\"},\n"                       \
    "  {\"name\": \"n\", \"kind\": \"scalar\", \"type\": \"s32\"},\n"                              \
    "  {\"name\": \"ranks\", \"kind\": \"scalar\", \"type\": \"s32\"},\n"                          \
    "  {\"name\": \"rank\", \"kind\": \"rank\", \"type\": \"s32\"},\n"                             \
    "  {\"name\": \"epoch\", \"kind\": \"scalar\", \"type\": \"u32\"}],\n"

#define SUM_UP_CASES                                                                               \
    " \"oracle\": \"ar_oneshot\", \"tolerance\": {\"relative_l2\": 1e-6},\n"                       \
    " \"cases\": [\n"                                                                              \
    "  {\"name\": \"s\", \"split\": \"search\", \"use\": \"smoke\", "                              \
    "\"shape\": {\"n\": 70, \"ranks\": 3, \"epoch\": 1}},\n"                                       \
    "  {\"name\": \"c\", \"split\": \"search\", \"use\": \"check\", "                              \
    "\"shape\": {\"n\": 301, \"ranks\": 4, \"epoch\": 2}},\n"                                      \
    "  {\"name\": \"t\", \"split\": \"search\", \"use\": \"time\", "                               \
    "\"shape\": {\"n\": 2048, \"ranks\": 4, \"epoch\": 3}},\n"                                     \
    "  {\"name\": \"h\", \"split\": \"held-out\", \"use\": \"time\", "                             \
    "\"shape\": {\"n\": 1500, \"ranks\": 2, \"epoch\": 4}}]}\n"

/* "": there is no such text. */
static inline const char *text_of(const json_t *row, const char *key) {
    const char *text = json_string_value(json_object_get(row, key));
    return text != NULL ? text : "";
}

#endif
