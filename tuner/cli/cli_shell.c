/* Completion for shells, and man pages, from the table of commands and options. */
#include "tuner/cli/cli.h"

#include <string.h>

static bool takes(const cli_option_row *row, size_t command) {
    return (row->commands >> command & 1u) != 0;
}

static bool has_argument(const cli_option_row *row) {
    return row->kind != CLI_IS_FLAG;
}

/* ---- completion ---- */

/* The words of "a|b|c", with blanks between them. */
static void print_choices(ev_str *out, const char *argument) {
    for (; *argument != '\0'; argument++)
        ev_str_char(out, *argument == '|' ? ' ' : *argument);
}

/* Text between single quotes, for all three shells; a quote in it becomes a typographic one. */
static void print_quoted(ev_str *out, const char *text) {
    ev_str_char(out, '\'');
    for (; *text != '\0'; text++) {
        if (*text == '\'')
            ev_str_append(out, "\xe2\x80\x99");
        else
            ev_str_char(out, *text);
    }
    ev_str_char(out, '\'');
}

/* The names of the commands, with a blank behind each. */
static void print_commands(ev_str *out) {
    for (size_t i = 0; i < CLI_COMMAND_COUNT; i++)
        ev_str_printf(out, "%s ", cli_commands[i].name);
}

static void bash_command(ev_str *out, size_t command) {
    ev_str_printf(out, "    %s)\n        case $previous in\n", cli_commands[command].name);
    for (size_t i = 0; i < CLI_OPTION_COUNT; i++) {
        const cli_option_row *row = &cli_options[i];
        if (!takes(row, command) || !has_argument(row) || row->kind == CLI_IS_MAYBE_COUNT)
            continue;
        ev_str_printf(out, "        --%s) ", row->name);
        if (row->kind == CLI_IS_CHOICE) {
            ev_str_append(out, "words='");
            print_choices(out, row->argument);
            ev_str_append(out, "' ;;\n");
        } else {
            ev_str_append(out, "files=1 ;;\n");
        }
    }
    ev_str_append(out, "        *) words='");
    for (size_t i = 0; i < CLI_OPTION_COUNT; i++) {
        if (takes(&cli_options[i], command))
            ev_str_printf(out, "--%s ", cli_options[i].name);
    }
    ev_str_append(out, "--help'\n           [[ $now == -* ]] || ");
    if (command == CLI_HELP) {
        ev_str_append(out, "words='");
        print_commands(out);
        ev_str_append(out, "' ;;\n");
    } else {
        ev_str_append(out, "files=1 ;;\n");
    }
    ev_str_append(out, "        esac ;;\n");
}

static void print_bash(ev_str *out) {
    ev_str_append(out,
                  "# Completion of evoke for bash.\n_evoke() {\n"
                  "    local now=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}"
                  " words='' files=\n"
                  "    COMPREPLY=()\n    if ((COMP_CWORD == 1)); then\n        words='");
    print_commands(out);
    ev_str_append(out, "--help --version'\n    else\n    case ${COMP_WORDS[1]} in\n");
    for (size_t i = 0; i < CLI_COMMAND_COUNT; i++)
        bash_command(out, i);
    ev_str_append(out, "    esac\n    fi\n"
                       "    if [[ -n $files ]]; then\n"
                       "        mapfile -t COMPREPLY < <(compgen -f -- \"$now\")\n"
                       "    else\n"
                       "        mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$now\")\n"
                       "    fi\n}\ncomplete -o filenames -F _evoke evoke\n");
}

/* The specification of an option for _arguments: brackets, colons and backslashes are its own. */
static void zsh_text(ev_str *out, const char *text) {
    for (; *text != '\0'; text++) {
        if (*text == '\'')
            ev_str_append(out, "\xe2\x80\x99");
        else if (strchr("[]:\\", *text) != NULL)
            ev_str_printf(out, "\\%c", *text);
        else
            ev_str_char(out, *text);
    }
}

static void zsh_option(ev_str *out, const cli_option_row *row) {
    bool is_list = row->kind == CLI_IS_LIST;
    ev_str_printf(out, " \\\n        '%s--%s[", is_list ? "*" : "", row->name);
    zsh_text(out, row->doc);
    ev_str_char(out, ']');
    if (has_argument(row)) {
        ev_str_append(out, row->kind == CLI_IS_MAYBE_COUNT ? "::" : ":");
        zsh_text(out, row->argument);
        ev_str_char(out, ':');
        if (row->kind == CLI_IS_CHOICE) {
            ev_str_char(out, '(');
            print_choices(out, row->argument);
            ev_str_char(out, ')');
        } else if (row->kind == CLI_IS_TEXT) {
            ev_str_append(out, "_files");
        }
    }
    ev_str_char(out, '\'');
}

static void print_zsh(ev_str *out) {
    ev_str_append(out, "#compdef evoke\n# Completion of evoke for zsh.\n_evoke() {\n"
                       "    local -a commands=(");
    for (size_t i = 0; i < CLI_COMMAND_COUNT; i++) {
        ev_str_printf(out, "\n        '%s:", cli_commands[i].name);
        zsh_text(out, cli_commands[i].doc);
        ev_str_char(out, '\'');
    }
    ev_str_append(out, ")\n    if ((CURRENT == 2)); then\n"
                       "        _describe command commands\n        return\n    fi\n"
                       "    local command=$words[2]\n    words=(\"${(@)words[2,-1]}\")\n"
                       "    ((CURRENT--))\n    case $command in\n");
    for (size_t i = 0; i < CLI_COMMAND_COUNT; i++) {
        ev_str_printf(out, "    %s) _arguments", cli_commands[i].name);
        for (size_t o = 0; o < CLI_OPTION_COUNT; o++) {
            if (takes(&cli_options[o], i))
                zsh_option(out, &cli_options[o]);
        }
        ev_str_append(out, " \\\n        '--help[the help of this command]' '*:operand:");
        if (i == CLI_HELP) {
            ev_str_char(out, '(');
            print_commands(out);
            ev_str_char(out, ')');
        } else {
            ev_str_append(out, "_files");
        }
        ev_str_append(out, "' ;;\n");
    }
    ev_str_append(out, "    esac\n}\n_evoke \"$@\"\n");
}

static void print_fish(ev_str *out) {
    ev_str_append(out, "# Completion of evoke for fish.\n");
    for (size_t i = 0; i < CLI_COMMAND_COUNT; i++) {
        ev_str_printf(out, "complete -c evoke -n __fish_use_subcommand -f -a %s -d ",
                      cli_commands[i].name);
        print_quoted(out, cli_commands[i].doc);
        ev_str_char(out, '\n');
    }
    ev_str_printf(out, "complete -c evoke -n '__fish_seen_subcommand_from %s' -f -a '",
                  cli_commands[CLI_HELP].name);
    print_commands(out);
    ev_str_append(out, "'\n");
    for (size_t i = 0; i < CLI_COMMAND_COUNT; i++) {
        for (size_t o = 0; o < CLI_OPTION_COUNT; o++) {
            const cli_option_row *row = &cli_options[o];
            if (!takes(row, i))
                continue;
            ev_str_printf(out, "complete -c evoke -n '__fish_seen_subcommand_from %s' -l %s ",
                          cli_commands[i].name, row->name);
            if (row->kind == CLI_IS_CHOICE) {
                ev_str_append(out, "-x -a '");
                print_choices(out, row->argument);
                ev_str_append(out, "' ");
            } else if (has_argument(row) && row->kind != CLI_IS_MAYBE_COUNT) {
                ev_str_append(out, "-r ");
            }
            ev_str_append(out, "-d ");
            print_quoted(out, row->doc);
            ev_str_char(out, '\n');
        }
    }
}

bool cli_print_completion(ev_str *out, const char *shell) {
    if (strcmp(shell, "bash") == 0)
        print_bash(out);
    else if (strcmp(shell, "zsh") == 0)
        print_zsh(out);
    else if (strcmp(shell, "fish") == 0)
        print_fish(out);
    else
        return false;
    return true;
}

/* ---- man pages ---- */

/* Text of roff: a backslash, a hyphen, and a dot or a quote that begins a line, mean more there. */
static void roff(ev_str *out, const char *text) {
    if (*text == '.' || *text == '\'')
        ev_str_append(out, "\\&");
    for (; *text != '\0'; text++) {
        if (*text == '\\')
            ev_str_append(out, "\\e");
        else if (*text == '-')
            ev_str_append(out, "\\-");
        else
            ev_str_char(out, *text);
    }
}

static void begin_man(ev_str *out, const char *name, const char *doc) {
    ev_str_append(out, ".TH ");
    for (const char *c = name; *c != '\0'; c++)
        ev_str_char(out, *c >= 'a' && *c <= 'z' ? (char)(*c - 'a' + 'A') : *c);
    ev_str_printf(out, " 1 \"\" \"Evoke %s\" \"Evoke\"\n.SH NAME\n", EVOKE_VERSION);
    roff(out, name);
    ev_str_append(out, " \\- ");
    roff(out, doc);
    ev_str_append(out, "\n.SH SYNOPSIS\n");
}

static void man_exits(ev_str *out) {
    ev_str_append(out, ".SH EXIT STATUS\n");
    for (size_t i = 0; i < cli_exit_count; i++) {
        ev_str_printf(out, ".TP\n%d\n", cli_exits[i].code);
        roff(out, cli_exits[i].doc);
        ev_str_char(out, '\n');
    }
}

static void man_option(ev_str *out, const cli_option_row *row) {
    ev_str_append(out, ".TP\n.B ");
    ev_str_append(out, "\\-\\-");
    roff(out, row->name);
    if (row->argument[0] != '\0') {
        ev_str_char(out, ' ');
        roff(out, row->argument);
    }
    ev_str_char(out, '\n');
    roff(out, row->doc);
    if (row->otherwise[0] != '\0') {
        ev_str_append(out, " (default ");
        roff(out, row->otherwise);
        ev_str_char(out, ')');
    }
    ev_str_char(out, '\n');
}

static void man_examples(ev_str *out, cli_command command) {
    ev_str_append(out, ".SH EXAMPLES\n");
    for (size_t i = 0; i < cli_example_count; i++) {
        if (cli_examples[i].command != command)
            continue;
        ev_str_append(out, ".TP\n.B ");
        roff(out, cli_examples[i].line);
        ev_str_char(out, '\n');
        roff(out, cli_examples[i].doc);
        ev_str_char(out, '\n');
    }
}

void cli_print_command_man(ev_str *out, cli_command command) {
    const cli_command_row *row = &cli_commands[command];
    ev_str name = EV_STR_EMPTY;
    ev_str_printf(&name, "evoke-%s", row->name);
    begin_man(out, ev_str_text(&name), row->doc);
    ev_str_free(&name);
    ev_str_printf(out, ".B evoke %s\n[OPTION]... ", row->name);
    roff(out, row->operands);
    ev_str_append(out, "\n.SH OPTIONS\n");
    for (size_t i = 0; i < CLI_OPTION_COUNT; i++) {
        if (takes(&cli_options[i], command))
            man_option(out, &cli_options[i]);
    }
    ev_str_append(out, ".TP\n.B \\-\\-help\nthe same on the terminal\n");
    man_exits(out);
    man_examples(out, command);
    ev_str_append(out, ".SH SEE ALSO\n.BR evoke (1)\n");
}

void cli_print_man(ev_str *out) {
    begin_man(out, "evoke",
              "evolves the LLVM IR of GPU kernels until they are faster and still right");
    ev_str_append(out, ".B evoke\nCOMMAND [OPTION]... [OPERAND]...\n.SH COMMANDS\n");
    for (size_t i = 0; i < CLI_COMMAND_COUNT; i++) {
        ev_str_printf(out, ".TP\n.BR evoke\\-%s (1)\n", cli_commands[i].name);
        roff(out, cli_commands[i].doc);
        ev_str_char(out, '\n');
    }
    man_exits(out);
    ev_str_append(out, "Results go to stdout, all else to stderr.\n.SH ENVIRONMENT\n");
    for (size_t i = 0; i < cli_variable_count; i++) {
        ev_str_printf(out, ".TP\n.B %s\n", cli_variables[i].name);
        roff(out, cli_variables[i].doc);
        ev_str_char(out, '\n');
    }
    ev_str_append(out, ".SH SEE ALSO\n.BR evoke\\-bundle (3)\n");
}
