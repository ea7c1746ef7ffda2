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

/* As kernels/collectives/ar_oneshot, with chunks of 64 elements. */
#define SUM_UP_SOURCE                                                                              \
    "#include \"evoke_cuda.h\"\n"                                                                  \
    "extern \"C\" __global__ void sum_up(const float *__restrict__ input,\n"                       \
    "    float *__restrict__ output, float *stage, float *const *__restrict__ stages,\n"           \
    "    unsigned *flags, unsigned *const *__restrict__ all_flags, int n, int ranks, int rank,\n"  \
    "    unsigned epoch) {\n"                                                                      \
    "    int i = blockIdx.x * 64 + threadIdx.x, peer = threadIdx.x;\n"                             \
    "    size_t half = (size_t)(epoch & 1) * ((n + 3) / 4 * 4);\n"                                 \
    "    if (i < n)\n"                                                                             \
    "        stage[half + i] = input[i];\n"                                                        \
    "    __syncthreads();\n"                                                                       \
    "    if (peer < ranks) {\n"                                                                    \
    "        __threadfence_system();\n"                                                            \
    "        *(volatile unsigned *)&all_flags[peer][blockIdx.x * ranks + rank] = epoch;\n"         \
    "        while ((int)(*(volatile unsigned *)&flags[blockIdx.x * ranks + peer] - epoch) < 0)\n" \
    "            ;\n"                                                                              \
    "        __threadfence_system();\n"                                                            \
    "    }\n"                                                                                      \
    "    __syncthreads();\n"                                                                       \
    "    if (i < n) {\n"                                                                           \
    "        float sum = 0.0f;\n"                                                                  \
    "        for (int r = 0; r < ranks; r++)\n"                                                    \
    "            sum += stages[r][half + i];\n"                                                    \
    "        output[i] = sum;\n"                                                                   \
    "    }\n"                                                                                      \
    "}\n"

#define SUM_UP_TASK                                                                                \
    SUM_UP_BEGIN                                                                                   \
    "  {\"name\": \"stages\", \"kind\": \"peers\", \"of\": \"stage\"},\n" SUM_UP_ARGUMENTS         \
    " \"starts\": [\n"                                                                             \
    "  {\"name\": \"plain\", \"source\": \"sum.cu\", \"grid\": \"ceil_div(n, 64)\", \"block\": "   \
    "64},\n"                                                                                       \
    "  {\"name\": \"other\", \"source\": \"other.cu\", \"grid\": \"ceil_div(n, 64)\", "            \
    "\"block\": 64}],\n" SUM_UP_CASES

/* An all-reduce: `put` leaves the rank's numbers in a scratch buffer and tells the peers, `get`
 * waits for theirs and adds them up. The stage is what the oracle of ar_oneshot wants. */
#define SUM_UP_STEPS_SOURCE                                                                        \
    "#include \"evoke_cuda.h\"\n"                                                                  \
    "extern \"C\" __global__ void put(const float *__restrict__ input, float *stage, float "       \
    "*mine,\n"                                                                                     \
    "    unsigned *const *__restrict__ all_flags, int n, int ranks, int rank, unsigned epoch) {\n" \
    "    int i = blockIdx.x * 64 + threadIdx.x, peer = threadIdx.x;\n"                             \
    "    size_t half = (size_t)(epoch & 1) * ((n + 3) / 4 * 4);\n"                                 \
    "    if (i < n)\n"                                                                             \
    "        stage[half + i] = mine[i] = input[i];\n"                                              \
    "    __syncthreads();\n"                                                                       \
    "    if (peer < ranks) {\n"                                                                    \
    "        __threadfence_system();\n"                                                            \
    "        *(volatile unsigned *)&all_flags[peer][blockIdx.x * ranks + rank] = epoch;\n"         \
    "    }\n"                                                                                      \
    "}\n"                                                                                          \
    "extern \"C\" __global__ void get(float *output, const float *mine,\n"                         \
    "    float *const *__restrict__ all, unsigned *flags, int n, int ranks, unsigned epoch) {\n"   \
    "    int i = blockIdx.x * 64 + threadIdx.x, peer = threadIdx.x;\n"                             \
    "    if (peer < ranks) {\n"                                                                    \
    "        while ((int)(*(volatile unsigned *)&flags[blockIdx.x * ranks + peer] - epoch) < 0)\n" \
    "            ;\n"                                                                              \
    "        __threadfence_system();\n"                                                            \
    "    }\n"                                                                                      \
    "    __syncthreads();\n"                                                                       \
    "    if (i < n) {\n"                                                                           \
    "        float sum = 0.0f;\n"                                                                  \
    "        for (int r = 0; r < ranks; r++)\n"                                                    \
    "            sum += all[r][i];\n"                                                              \
    "        output[i] = sum + 0.0f * mine[i];\n"                                                  \
    "    }\n"                                                                                      \
    "}\n"

#define SUM_UP_STEPS_TASK                                                                          \
    SUM_UP_BEGIN SUM_UP_ARGUMENTS                                                                  \
        " \"starts\": [\n"                                                                         \
        "  {\"name\": \"plain\", \"source\": \"sum.cu\",\n"                                        \
        "   \"scratch\": [{\"name\": \"mine\", \"type\": \"f32\", \"count\": \"n\"},\n"            \
        "    {\"name\": \"all\", \"kind\": \"peers\", \"of\": \"mine\"}],\n"                       \
        "   \"steps\": [{\"entry\": \"put\", \"grid\": \"ceil_div(n, 64)\", \"block\": 64,\n"      \
        "     \"arguments\": [\"input\", \"stage\", \"mine\", \"all_flags\", \"n\", \"ranks\", "   \
        "\"rank\",\n"                                                                              \
        "      \"epoch\"]},\n"                                                                     \
        "    {\"entry\": \"get\", \"grid\": \"ceil_div(n, 64)\", \"block\": 64,\n"                 \
        "     \"arguments\": [\"output\", \"mine\", \"all\", \"flags\", \"n\", \"ranks\", "        \
        "\"epoch\"]}]}],\n" SUM_UP_CASES

/* "": there is no such text. */
static inline const char *text_of(const json_t *row, const char *key) {
    const char *text = json_string_value(json_object_get(row, key));
    return text != NULL ? text : "";
}

#endif
