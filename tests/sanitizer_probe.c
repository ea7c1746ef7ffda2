/* Does on purpose what the sanitizers must find; run by ctest in the sanitized build only. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *lost[1];

static void leak(void) {
    lost[0] = malloc(77);
    lost[0] = NULL;
}

static int overflow(const char *word) {
    char *text = strdup(word);
    if (text == NULL)
        return 1;
    int got = (unsigned char)text[strlen(word) + 1];
    free(text);
    return got;
}

static int undefined(int argc) {
    return INT_MAX - 1 + argc;
}

int main(int argc, char **argv) {
    if (argc != 2)
        return 2;
    if (strcmp(argv[1], "leak") == 0)
        leak();
    else if (strcmp(argv[1], "overflow") == 0)
        printf("%d\n", overflow(argv[1]));
    else
        printf("%d\n", undefined(argc));
    return 0;
}
