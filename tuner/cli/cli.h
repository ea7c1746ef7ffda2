/* Cli: the command line, read by one table (tuner/cli/options.def).
 *
 * A cli_args borrows argv and the table, and owns two arrays of pointers; cli_args_free frees
 * them. */
#ifndef TUNER_CLI_CLI_H
#define TUNER_CLI_CLI_H

#include "base/status.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum cli_command {
#define CLI_COMMAND(id, name, operands, least, most, doc) CLI_##id,
#include "tuner/cli/options.def"
    CLI_COMMAND_COUNT
} cli_command;

typedef enum cli_option {
#define CLI_OPTION(id, name, argument, kind, otherwise, commands, doc) CLI_OPT_##id,
#include "tuner/cli/options.def"
    CLI_OPTION_COUNT
} cli_option;

typedef enum cli_kind {
    CLI_IS_FLAG,
    CLI_IS_TEXT,
    CLI_IS_COUNT,
    CLI_IS_MAYBE_COUNT,
    CLI_IS_REAL,
    CLI_IS_SIZES,
    CLI_IS_CHOICE,
    CLI_IS_LIST,
} cli_kind;

typedef struct cli_args {
    cli_command command;
    bool help;                            /* --help was given; nothing else was checked */
    bool version;                         /* --version: no command */
    const char *values[CLI_OPTION_COUNT]; /* the last one given, or the default; "" for none */
    bool given[CLI_OPTION_COUNT];
    const char **operands;
    size_t operand_count;
    const char **list; /* values of the LIST option, in order */
    size_t list_count;
} cli_args;

/* Reads argv. Options and operands may be mixed; "--" ends the options. EV_BAD: an unknown command
 * or option (with the nearest name), an invalid value, too few or too many operands. */
ev_status cli_parse(int argc, char *const argv[], cli_args *out, ev_error *err) EV_CHECKED;
void cli_args_free(cli_args *args);

/* Values, which cli_parse has checked. */
const char *cli_text(const cli_args *args, cli_option option); /* NULL: not given, no default */
bool cli_flag(const cli_args *args, cli_option option);
uint64_t cli_count(const cli_args *args, cli_option option, uint64_t otherwise);
double cli_real(const cli_args *args, cli_option option, double otherwise);
void cli_sizes(const cli_args *args, cli_option option, uint32_t out[3]);

const char *cli_command_name(cli_command command);
/* EV_BAD: an unknown name (with the nearest). */
ev_status cli_find_command(const char *name, cli_command *out, ev_error *err) EV_CHECKED;
/* Evaluations of a task by the word of --effort. */
uint64_t cli_effort(const char *word);
/* Calls `take` with each word of a list with commas, "stage,pad". EV_BAD: an empty word, one of
 * over 511 characters, or `take`'s. */
ev_status cli_words(const char *list,
                    ev_status (*take)(void *context, const char *word, ev_error *err),
                    void *context, ev_error *err) EV_CHECKED;

/* `evoke --help`, `evoke COMMAND --help` and docs/cli.md, at most 100 columns. */
void cli_print_help(ev_str *out);
void cli_print_command_help(ev_str *out, cli_command command);
void cli_print_markdown(ev_str *out);
/* Man pages in roff: evoke(1), and evoke-COMMAND(1). */
void cli_print_man(ev_str *out);
void cli_print_command_man(ev_str *out, cli_command command);
/* Completion for "bash", "zsh" or "fish"; false: another shell. */
bool cli_print_completion(ev_str *out, const char *shell);

/* ---- the table, for the files of this unit ---- */

#define CLI_MANY SIZE_MAX
#define CLI_EFFORTS "quick 400, normal 5000, thorough 30000"

typedef struct cli_command_row {
    const char *name, *operands;
    size_t least, most;
    const char *doc;
} cli_command_row;

typedef struct cli_option_row {
    const char *name, *argument;
    cli_kind kind;
    const char *otherwise;
    unsigned commands; /* bit 1 << cli_command */
    const char *doc;
} cli_option_row;

typedef struct cli_example_row {
    cli_command command;
    const char *line, *doc;
} cli_example_row;

typedef struct cli_exit_row {
    int code;
    const char *doc;
} cli_exit_row;

typedef struct cli_variable_row {
    const char *name, *doc;
} cli_variable_row;

extern const cli_example_row cli_examples[];
extern const size_t cli_example_count;
extern const cli_exit_row cli_exits[];
extern const size_t cli_exit_count;
extern const cli_variable_row cli_variables[];
extern const size_t cli_variable_count;
extern const cli_command_row cli_commands[CLI_COMMAND_COUNT];
extern const cli_option_row cli_options[CLI_OPTION_COUNT];

#endif
