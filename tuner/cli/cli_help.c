/* Prints the help and the command-line reference from the table of commands and options. */
#include "tuner/cli/cli.h"

#include <string.h>

#define WIDTH 100
#define EXAMPLE_INDENT 4

const cli_example_row cli_examples[] = {
#define CLI_EXAMPLE(command, line, doc) {CLI_##command, line, doc},
#include "tuner/cli/options.def"
};
const size_t cli_example_count = sizeof cli_examples / sizeof cli_examples[0];

const cli_exit_row cli_exits[] = {
#define CLI_EXIT(code, doc) {code, doc},
#include "tuner/cli/options.def"
};
const size_t cli_exit_count = sizeof cli_exits / sizeof cli_exits[0];

const cli_variable_row cli_variables[] = {
#define CLI_VARIABLE(name, doc) {name, doc},
#include "tuner/cli/options.def"
};
const size_t cli_variable_count = sizeof cli_variables / sizeof cli_variables[0];

/* Takes the spaces at the end away. */
static void trim(ev_str *out) {
    while (out->length > 0 && out->data[out->length - 1] == ' ')
        out->data[--out->length] = '\0';
}

/* Appends `text`, broken between words at WIDTH, later lines indented; the first line has `used`
 * columns already. */
static void print_wrapped(ev_str *out, const char *text, size_t used, size_t indent) {
    while (*text != '\0') {
        size_t word = strcspn(text, " ");
        if (used + word > WIDTH && used > indent) {
            trim(out);
            ev_str_printf(out, "\n%*s", (int)indent, "");
            used = indent;
        }
        ev_str_append_n(out, text, word);
        used += word;
        text += word;
        if (*text == ' ') {
            ev_str_char(out, ' ');
            used++;
            text++;
        }
    }
    trim(out);
    ev_str_char(out, '\n');
}

/* "  LEFT   doc", the docs of a list at one column. */
static void print_entry(ev_str *out, const char *left, size_t column, const char *doc) {
    ev_str_printf(out, "  %-*s", (int)(column - 2), left);
    size_t used = strlen(left) + 2;
    if (used >= column) {
        ev_str_printf(out, "\n%*s", (int)column, "");
        used = column;
    }
    print_wrapped(out, doc, used > column ? used : column, column);
}

static void print_exits(ev_str *out) {
    ev_str_append(out, "\nExit codes:\n");
    for (size_t i = 0; i < cli_exit_count; i++) {
        char left[8] = {(char)('0' + cli_exits[i].code)};
        print_entry(out, left, 5, cli_exits[i].doc);
    }
}

void cli_print_help(ev_str *out) {
    ev_str_append(out,
                  "Evoke takes a GPU kernel, evolves its LLVM IR, and hands back a variant that "
                  "is faster and\nstill correct, with the evidence.\n\n"
                  "Usage: evoke COMMAND [OPTION]... [OPERAND]...\n\nCommands:\n");
    for (size_t i = 0; i < CLI_COMMAND_COUNT; i++)
        print_entry(out, cli_commands[i].name, 12, cli_commands[i].doc);
    ev_str_append(out,
                  "\nevoke COMMAND --help tells its options and shows examples; evoke --version "
                  "the version.\n");
    print_exits(out);
    ev_str_append(out, "\nResults go to stdout, all else to stderr.\n");
}

/* "[--name ARG]" of all options of a command, behind its operands. */
static void print_usage(ev_str *out, cli_command command, size_t indent) {
    ev_str words = EV_STR_EMPTY;
    ev_str_append(&words, cli_commands[command].operands);
    for (size_t i = 0; i < CLI_OPTION_COUNT; i++) {
        const cli_option_row *row = &cli_options[i];
        if ((row->commands >> command & 1u) == 0)
            continue;
        /* A no-break mark keeps an option and its argument on one line. */
        ev_str_printf(&words, " [--%s%s%s]%s", row->name, row->argument[0] != '\0' ? "\001" : "",
                      row->argument, row->kind == CLI_IS_LIST ? "..." : "");
    }
    const char *text = ev_str_text(&words);
    size_t begin = out->length;
    print_wrapped(out, text[0] == ' ' ? text + 1 : text, indent, indent);
    for (size_t i = begin; i < out->length; i++) {
        if (out->data[i] == '\001')
            out->data[i] = ' ';
    }
    ev_str_free(&words);
}

static void option_doc(ev_str *out, const cli_option_row *row) {
    ev_str_append(out, row->doc);
    if (row->otherwise[0] != '\0')
        ev_str_printf(out, " (default %s)", row->otherwise);
}

static void print_options(ev_str *out, cli_command command) {
    for (size_t i = 0; i < CLI_OPTION_COUNT; i++) {
        const cli_option_row *row = &cli_options[i];
        if ((row->commands >> command & 1u) == 0)
            continue;
        ev_str left = EV_STR_EMPTY, doc = EV_STR_EMPTY;
        ev_str_printf(&left, "--%s%s%s", row->name, row->argument[0] != '\0' ? " " : "",
                      row->argument);
        option_doc(&doc, row);
        print_entry(out, ev_str_text(&left), 26, ev_str_text(&doc));
        ev_str_free(&left);
        ev_str_free(&doc);
    }
    print_entry(out, "--help", 26, "this text");
}

void cli_print_command_help(ev_str *out, cli_command command) {
    const cli_command_row *row = &cli_commands[command];
    ev_str_printf(out, "evoke %s: %s\n\nUsage: evoke %s ", row->name, row->doc, row->name);
    print_usage(out, command, strlen("Usage: evoke  ") + strlen(row->name));
    ev_str_append(out, "\nOptions:\n");
    print_options(out, command);
    ev_str_append(out, "\nExamples:\n");
    for (size_t i = 0; i < cli_example_count; i++) {
        if (cli_examples[i].command != command)
            continue;
        ev_str_printf(out, "  %s\n%*s", cli_examples[i].line, 2 + EXAMPLE_INDENT, "");
        print_wrapped(out, cli_examples[i].doc, 2 + EXAMPLE_INDENT, 2 + EXAMPLE_INDENT);
    }
}

/* ---- Markdown ---- */

static void markdown_command(ev_str *out, cli_command command) {
    const cli_command_row *row = &cli_commands[command];
    ev_str_printf(out, "\n## evoke %s\n\n%s\n\n```\nevoke %s ", row->name, row->doc, row->name);
    print_usage(out, command, strlen("evoke  ") + strlen(row->name));
    ev_str_append(out, "```\n\n| option | meaning |\n|---|---|\n");
    for (size_t i = 0; i < CLI_OPTION_COUNT; i++) {
        const cli_option_row *option = &cli_options[i];
        if ((option->commands >> command & 1u) == 0)
            continue;
        ev_str_printf(out, "| `--%s%s", option->name, option->argument[0] != '\0' ? " " : "");
        for (const char *c = option->argument; *c != '\0'; c++)
            ev_str_append_n(out, *c == '|' ? "\\|" : c, *c == '|' ? 2 : 1);
        ev_str_append(out, "` | ");
        option_doc(out, option);
        ev_str_append(out, " |\n");
    }
    ev_str_append(out, "| `--help` | the same text on the terminal |\n\nExamples:\n\n");
    for (size_t i = 0; i < cli_example_count; i++) {
        if (cli_examples[i].command == command)
            ev_str_printf(out, "- `%s` — %s\n", cli_examples[i].line, cli_examples[i].doc);
    }
}

void cli_print_markdown(ev_str *out) {
    ev_str_append(out, "# The command line\n\n"
                       "This file is printed by `evoke help --markdown` from the table "
                       "`tuner/cli/options.def`; a test holds them\ntogether.\n\n"
                       "| command | what it does |\n|---|---|\n");
    for (size_t i = 0; i < CLI_COMMAND_COUNT; i++)
        ev_str_printf(out, "| [`%s`](#evoke-%s) | %s |\n", cli_commands[i].name,
                      cli_commands[i].name, cli_commands[i].doc);
    ev_str_append(out, "\n| exit code | meaning |\n|---|---|\n");
    for (size_t i = 0; i < cli_exit_count; i++)
        ev_str_printf(out, "| %d | %s |\n", cli_exits[i].code, cli_exits[i].doc);
    ev_str_append(out, "\nResults go to stdout, all else to stderr.\n\n"
                       "| environment variable | meaning |\n|---|---|\n");
    for (size_t i = 0; i < cli_variable_count; i++)
        ev_str_printf(out, "| `%s` | %s |\n", cli_variables[i].name, cli_variables[i].doc);
    for (size_t i = 0; i < CLI_COMMAND_COUNT; i++)
        markdown_command(out, (cli_command)i);
}
