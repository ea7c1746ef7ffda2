/* Reads the command line by the table of commands and options. */
#include "tuner/cli/cli.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MANY CLI_MANY
#define ON(id) (1u << CLI_##id)

const cli_command_row cli_commands[CLI_COMMAND_COUNT] = {
#define CLI_COMMAND(id, name, operands, least, most, doc) {name, operands, least, most, doc},
#include "tuner/cli/options.def"
};

const cli_option_row cli_options[CLI_OPTION_COUNT] = {
#define CLI_OPTION(id, name, argument, kind, otherwise, commands, doc)                             \
    {name, argument, CLI_IS_##kind, otherwise, commands, doc},
#include "tuner/cli/options.def"
};

_Static_assert(CLI_COMMAND_COUNT <= 32, "an option's commands are bits of an unsigned");

const char *cli_command_name(cli_command command) {
    return cli_commands[command].name;
}

/* ---- values ---- */

static bool read_count(const char *text, uint64_t *out) {
    char *end = NULL;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || value > INT64_MAX)
        return false;
    *out = value;
    return true;
}

static bool read_real(const char *text, double *out) {
    char *end = NULL;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(value) || value < 0)
        return false;
    *out = value;
    return true;
}

static bool read_sizes(const char *text, uint32_t out[3]) {
    out[0] = out[1] = out[2] = 1;
    for (size_t i = 0; i < 3; i++) {
        char *end = NULL;
        errno = 0;
        unsigned long long value = strtoull(text, &end, 10);
        if (text[0] < '0' || text[0] > '9' || errno != 0 || value == 0 || value > UINT32_MAX)
            return false;
        out[i] = (uint32_t)value;
        if (*end == '\0')
            return true;
        if (*end != ',')
            return false;
        text = end + 1;
    }
    return false;
}

/* Whether `word` is one of the words of "a|b|c". */
static bool is_choice(const char *choices, const char *word) {
    size_t length = strlen(word);
    for (const char *at = choices; length > 0;) {
        size_t part = strcspn(at, "|");
        if (part == length && strncmp(at, word, part) == 0)
            return true;
        if (at[part] == '\0')
            return false;
        at += part + 1;
    }
    return false;
}

static bool value_fits(const cli_option_row *row, const char *value) {
    uint64_t count = 0;
    double real = 0;
    uint32_t sizes[3];
    switch (row->kind) {
    case CLI_IS_FLAG:
    case CLI_IS_LIST:
        return true;
    case CLI_IS_TEXT:
        return value[0] != '\0';
    case CLI_IS_COUNT:
    case CLI_IS_MAYBE_COUNT:
        return read_count(value, &count);
    case CLI_IS_REAL:
        return read_real(value, &real);
    case CLI_IS_SIZES:
        return read_sizes(value, sizes);
    case CLI_IS_CHOICE:
        return is_choice(row->argument, value);
    }
    return false;
}

static const char *kind_wants(const cli_option_row *row) {
    switch (row->kind) {
    case CLI_IS_COUNT:
    case CLI_IS_MAYBE_COUNT:
        return "a whole number from 0 to 2^63 - 1";
    case CLI_IS_REAL:
        return "a number from 0 up";
    case CLI_IS_SIZES:
        return "one to three whole numbers from 1 up, like 64,2";
    case CLI_IS_CHOICE:
        return row->argument;
    default:
        return "a text that is not empty";
    }
}

const char *cli_text(const cli_args *args, cli_option option) {
    return args->values[option][0] != '\0' ? args->values[option] : NULL;
}

bool cli_flag(const cli_args *args, cli_option option) {
    assert(cli_options[option].kind == CLI_IS_FLAG);
    return args->given[option];
}

uint64_t cli_count(const cli_args *args, cli_option option, uint64_t otherwise) {
    assert(cli_options[option].kind == CLI_IS_COUNT ||
           cli_options[option].kind == CLI_IS_MAYBE_COUNT);
    uint64_t value = otherwise;
    return read_count(args->values[option], &value) ? value : otherwise;
}

double cli_real(const cli_args *args, cli_option option, double otherwise) {
    assert(cli_options[option].kind == CLI_IS_REAL);
    double value = otherwise;
    return read_real(args->values[option], &value) ? value : otherwise;
}

void cli_sizes(const cli_args *args, cli_option option, uint32_t out[3]) {
    assert(cli_options[option].kind == CLI_IS_SIZES);
    bool fits = read_sizes(args->values[option], out);
    assert(fits);
    (void)fits;
}

/* ---- names ---- */

/* A name is taken for a slip of another when at most half of it is wrong. */
typedef struct nearest {
    const char *name;
    int distance;
} nearest;

static void nearest_try(nearest *best, const char *given, const char *name) {
    int distance = ev_text_distance(given, name);
    if (distance < best->distance) {
        best->distance = distance;
        best->name = name;
    }
}

static nearest nearest_begin(const char *given) {
    return (nearest){NULL, (int)(strnlen(given, 40) + 1) / 2 + 1};
}

static ev_status fail_command(const char *given, ev_error *err) {
    nearest best = nearest_begin(given);
    for (size_t i = 0; i < CLI_COMMAND_COUNT; i++)
        nearest_try(&best, given, cli_commands[i].name);
    if (best.name != NULL)
        return ev_fail(err, EV_BAD, "there is no command '%s'; did you mean '%s'? See evoke --help",
                       given, best.name);
    return ev_fail(err, EV_BAD, "there is no command '%s'; see evoke --help", given);
}

static ev_status fail_option(cli_command command, const char *given, ev_error *err) {
    nearest best = nearest_begin(given);
    for (size_t i = 0; i < CLI_OPTION_COUNT; i++) {
        if ((cli_options[i].commands >> command & 1u) != 0)
            nearest_try(&best, given, cli_options[i].name);
    }
    const char *name = cli_commands[command].name;
    if (best.name != NULL)
        return ev_fail(err, EV_BAD, "%s has no option --%s; did you mean --%s? See evoke %s --help",
                       name, given, best.name, name);
    return ev_fail(err, EV_BAD, "%s has no option --%s; see evoke %s --help", name, given, name);
}

ev_status cli_find_command(const char *name, cli_command *out, ev_error *err) {
    for (size_t i = 0; i < CLI_COMMAND_COUNT; i++) {
        if (strcmp(cli_commands[i].name, name) == 0) {
            *out = (cli_command)i;
            return EV_OK;
        }
    }
    return fail_command(name, err);
}

static bool find_option(cli_command command, const char *name, size_t length, cli_option *out) {
    for (size_t i = 0; i < CLI_OPTION_COUNT; i++) {
        const cli_option_row *row = &cli_options[i];
        if ((row->commands >> command & 1u) != 0 && strlen(row->name) == length &&
            strncmp(row->name, name, length) == 0) {
            *out = (cli_option)i;
            return true;
        }
    }
    return false;
}

/* ---- reading ---- */

static ev_status set_value(cli_args *args, cli_option option, const char *value, ev_error *err) {
    const cli_option_row *row = &cli_options[option];
    if (!value_fits(row, value))
        return ev_fail(err, EV_BAD, "--%s needs %s, not '%s'; see evoke %s --help", row->name,
                       kind_wants(row), value, cli_commands[args->command].name);
    args->values[option] = value;
    args->given[option] = true;
    if (row->kind == CLI_IS_LIST)
        args->list[args->list_count++] = value;
    return EV_OK;
}

/* Takes the option at argv[*at], and its value from the same or the next word. */
static ev_status read_option(cli_args *args, int argc, char *const argv[], int *at, ev_error *err) {
    const char *name = argv[*at] + 2;
    size_t length = strcspn(name, "=");
    cli_option option = CLI_OPTION_COUNT;
    if (!find_option(args->command, name, length, &option)) {
        char given[64];
        size_t kept = length < sizeof given - 1 ? length : sizeof given - 1;
        memcpy(given, name, kept);
        given[kept] = '\0';
        return fail_option(args->command, given, err);
    }
    const cli_option_row *row = &cli_options[option];
    const char *value = name[length] == '=' ? name + length + 1 : NULL;
    if (row->kind == CLI_IS_FLAG) {
        if (value != NULL)
            return ev_fail(err, EV_BAD, "--%s takes no value; leave out '=%s'", row->name, value);
        value = "";
    } else if (row->kind == CLI_IS_MAYBE_COUNT && value == NULL) {
        bool has_number = *at + 1 < argc && argv[*at + 1][0] >= '0' && argv[*at + 1][0] <= '9';
        value = has_number ? argv[++*at] : row->otherwise;
    } else if (value == NULL) {
        if (*at + 1 >= argc)
            return ev_fail(err, EV_BAD, "--%s needs a value: --%s %s; see evoke %s --help",
                           row->name, row->name, row->argument, cli_commands[args->command].name);
        value = argv[++*at];
    }
    return set_value(args, option, value, err);
}

static ev_status check_operands(const cli_args *args, ev_error *err) {
    const cli_command_row *row = &cli_commands[args->command];
    if (args->operand_count < row->least)
        return ev_fail(err, EV_BAD, "%s needs %s; see evoke %s --help", row->name, row->operands,
                       row->name);
    if (args->operand_count > row->most)
        return ev_fail(err, EV_BAD, "%s takes %s; remove '%s', or see evoke %s --help", row->name,
                       row->most == 0 ? "options only" : row->operands, args->operands[row->most],
                       row->name);
    return EV_OK;
}

/* Words after the command. */
static ev_status read_words(cli_args *args, int argc, char *const argv[], ev_error *err) {
    bool options = true;
    for (int i = 2; i < argc; i++) {
        const char *word = argv[i];
        if (options && strcmp(word, "--") == 0) {
            options = false;
        } else if (options && (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)) {
            args->help = true;
            return EV_OK;
        } else if (options && strncmp(word, "--", 2) == 0) {
            EV_TRY(read_option(args, argc, argv, &i, err));
        } else if (options && word[0] == '-' && word[1] != '\0') {
            return ev_fail(err, EV_BAD,
                           "'%s' has one dash, but options have two; see evoke %s --help", word,
                           cli_commands[args->command].name);
        } else {
            args->operands[args->operand_count++] = word;
        }
    }
    return check_operands(args, err);
}

static ev_status read_all(cli_args *args, int argc, char *const argv[], ev_error *err) {
    if (argc < 2)
        return ev_fail(err, EV_BAD, "a command is missing; see evoke --help");
    const char *first = argv[1];
    if (strcmp(first, "--version") == 0) {
        args->version = true;
        args->given[CLI_OPT_JSON] = argc > 2 && strcmp(argv[2], "--json") == 0;
        if (argc > 2 && !args->given[CLI_OPT_JSON])
            return ev_fail(err, EV_BAD, "--version takes --json alone, not '%s'", argv[2]);
        return EV_OK;
    }
    if (strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0) {
        args->command = CLI_HELP;
        return EV_OK;
    }
    if (first[0] == '-')
        return ev_fail(err, EV_BAD,
                       "the command comes first, and '%s' is an option; see evoke --help", first);
    EV_TRY(cli_find_command(first, &args->command, err));
    return read_words(args, argc, argv, err);
}

ev_status cli_parse(int argc, char *const argv[], cli_args *out, ev_error *err) {
    cli_args args = {0};
    for (size_t i = 0; i < CLI_OPTION_COUNT; i++)
        args.values[i] = cli_options[i].otherwise;
    args.operands = calloc((size_t)argc + 1, sizeof *args.operands);
    args.list = calloc((size_t)argc + 1, sizeof *args.list);
    ev_status status = args.operands == NULL || args.list == NULL
                           ? ev_fail_memory(err, (size_t)argc * sizeof *args.operands)
                           : read_all(&args, argc, argv, err);
    if (status == EV_OK)
        *out = args;
    else
        cli_args_free(&args);
    return status;
}

void cli_args_free(cli_args *args) {
    free(args->operands);
    free(args->list);
    *args = (cli_args){0};
}

ev_status cli_words(const char *list,
                    ev_status (*take)(void *context, const char *word, ev_error *err),
                    void *context, ev_error *err) {
    for (const char *at = list;; at++) {
        char word[512];
        size_t length = strcspn(at, ",");
        if (length == 0 || length >= sizeof word)
            return ev_fail(err, EV_BAD, "'%s': names are separated by single commas", list);
        memcpy(word, at, length);
        word[length] = 0;
        EV_TRY(take(context, word, err));
        at += length;
        if (*at == 0)
            return EV_OK;
    }
}

/* The number behind a word of --effort, read from the words that the help shows. */
uint64_t cli_effort(const char *word) {
    const char *at = CLI_EFFORTS;
    size_t length = strlen(word);
    while (strncmp(at, word, length) != 0 || at[length] != ' ') {
        at = strchr(at, ',');
        assert(at != NULL);
        at += 2;
    }
    return strtoull(at + length, NULL, 10);
}
