/* The shapes of the papers, from their table. */
#include "corpora/corpus.h"

#include <assert.h>
#include <string.h>

#define KEYS(...) {__VA_ARGS__}
#define VALUES(...) {__VA_ARGS__}

static const corpus_shape SHAPES[] = {
#define CORPUS_SHAPE(name, paper, keys, values)                                                    \
    {name, paper, sizeof((const int64_t[])values) / sizeof(int64_t), keys, values},
#include "corpora/shapes.def"
#undef CORPUS_SHAPE
};

#define SHAPE_COUNT (sizeof SHAPES / sizeof SHAPES[0])

size_t corpus_shape_count(void) {
    return SHAPE_COUNT;
}

const corpus_shape *corpus_shape_at(size_t index) {
    assert(index < SHAPE_COUNT);
    return &SHAPES[index];
}

const corpus_shape *corpus_shape_find(const char *name) {
    for (size_t i = 0; i < SHAPE_COUNT; i++) {
        if (strcmp(SHAPES[i].name, name) == 0)
            return &SHAPES[i];
    }
    return NULL;
}
