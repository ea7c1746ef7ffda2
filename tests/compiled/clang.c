/* A clang-19 that remembers: the tests find it first in PATH. Several hundred times they have the
 * same kernel or oracle compiled by the same command, each for half a second.
 *
 * A command with -c or -shared and one output is remembered by all that it is made of: the
 * compiler, the arguments, the folder, the text on stdin, and each file that clang names as read
 * (-MD). What fails, or says anything, is not remembered. All other commands are the compiler's
 * own. EVOKE_TEST_COMPILED names the folder (kept/ beside this program unless told): KEY.files has
 * a line "HASH PATH" for each file, KEY.out the output. Only a header that comes to stand before
 * another one in the search path goes unseen. */
#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/evp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define HEX 65
#define MOST_ARGUMENTS 200
#define ENOUGH (1u << 20) /* of a list of files */

typedef struct command {
    char **argv;
    int argc;
    int out; /* where argv names the output; 0: nowhere */
    bool from_stdin, makes;
} command;

typedef struct text {
    char *data;
    size_t bytes;
} text;

static text read_all(int file) {
    text t = {0};
    size_t room = 0;
    for (ssize_t got = 1; got > 0; t.bytes += got > 0 ? (size_t)got : 0) {
        if (t.bytes == room) {
            room = room * 2 + 65536;
            char *more = realloc(t.data, room + 1);
            if (more == NULL)
                exit(3);
            t.data = more;
        }
        got = read(file, t.data + t.bytes, room - t.bytes);
    }
    t.data[t.bytes] = '\0';
    return t;
}

static bool read_file(const char *path, text *out) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    *out = read_all(file);
    (void)close(file);
    return true;
}

static bool write_all(int file, const text *t) {
    size_t done = 0;
    for (ssize_t put = 1; done < t->bytes && put > 0; done += put > 0 ? (size_t)put : 0)
        put = write(file, t->data + done, t->bytes - done);
    return done == t->bytes;
}

static bool write_file(const char *path, const text *t) {
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    return file >= 0 && write_all(file, t) && close(file) == 0;
}

/* ---- the compiler ---- */

/* The first clang-19 in PATH behind this program's folder; a script before the folder may be what
 * called this program. */
static bool find_compiler(char path[PATH_MAX]) {
    char self[PATH_MAX], there[PATH_MAX];
    const char *all = getenv("PATH");
    char *copy = strdup(all != NULL ? all : "/usr/bin"), *rest = copy, *dir;
    bool is_behind = false, found = false;
    while (!found && copy != NULL && realpath("/proc/self/exe", self) != NULL &&
           (dir = strsep(&rest, ":")) != NULL) {
        (void)snprintf(path, PATH_MAX, "%s/clang-19", dir);
        bool is_there = realpath(path, there) != NULL;
        if (is_there && strcmp(there, self) == 0)
            is_behind = true;
        else
            found = is_behind && is_there && access(path, X_OK) == 0;
    }
    free(copy);
    return found;
}

static command read_command(int argc, char **argv) {
    command c = {.argv = argv, .argc = argc};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-o") == 0 && i + 1 < argc)
            c.out = ++i;
        else if (strcmp(argv[i], "-") == 0)
            c.from_stdin = true;
        else if (strcmp(argv[i], "-c") == 0 || strcmp(argv[i], "-shared") == 0)
            c.makes = true;
    }
    c.makes = c.makes && c.out > 0 && argc + 5 < MOST_ARGUMENTS;
    return c;
}

/* ---- keys ---- */

static void finish(EVP_MD_CTX *hash, char hex[HEX]) {
    unsigned char raw[EVP_MAX_MD_SIZE];
    (void)EVP_DigestFinal_ex(hash, raw, NULL);
    for (int i = 0; i < 32; i++)
        (void)snprintf(hex + (size_t)i * 2, 3, "%02x", raw[i]);
    EVP_MD_CTX_free(hash);
}

static EVP_MD_CTX *begin(void) {
    EVP_MD_CTX *hash = EVP_MD_CTX_new();
    if (hash == NULL || EVP_DigestInit_ex(hash, EVP_sha256(), NULL) != 1)
        exit(3);
    return hash;
}

/* With its end, so that "a", "b" is not "ab". */
static void add(EVP_MD_CTX *hash, const char *word) {
    (void)EVP_DigestUpdate(hash, word, strlen(word) + 1);
}

static void key_of(const command *c, const char *compiler, const text *input, char hex[HEX]) {
    static const char *const names[] = {"CPATH", "C_INCLUDE_PATH", "LIBRARY_PATH", "CUDA_HOME"};
    EVP_MD_CTX *hash = begin();
    char cwd[PATH_MAX];
    struct stat s = {0};
    (void)stat(compiler, &s);
    (void)EVP_DigestUpdate(hash, &s.st_mtim, sizeof s.st_mtim);
    add(hash, compiler);
    add(hash, getcwd(cwd, sizeof cwd) != NULL ? cwd : "");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        add(hash, getenv(names[i]) != NULL ? getenv(names[i]) : "");
    for (int i = 1; i < c->argc; i++)
        add(hash, i != c->out ? c->argv[i] : "");
    (void)EVP_DigestUpdate(hash, input->data, input->bytes);
    finish(hash, hex);
}

static bool hash_file(const char *path, char hex[HEX]) {
    text t;
    if (!read_file(path, &t))
        return false;
    EVP_MD_CTX *hash = begin();
    (void)EVP_DigestUpdate(hash, t.data, t.bytes);
    finish(hash, hex);
    free(t.data);
    return true;
}

/* ---- what is remembered ---- */

static bool are_as_they_were(char *lines) {
    char hex[HEX];
    bool same = *lines != '\0';
    for (char *line; same && (line = strsep(&lines, "\n")) != NULL && *line != '\0';)
        same = strlen(line) > HEX && hash_file(line + HEX, hex) && memcmp(line, hex, HEX - 1) == 0;
    return same;
}

static bool give(const command *c, const text *out) {
    const char *path = c->argv[c->out];
    return strcmp(path, "-") == 0 ? write_all(STDOUT_FILENO, out) : write_file(path, out);
}

static bool give_remembered(const command *c, const char *files, const char *output) {
    text list, out;
    if (!read_file(files, &list))
        return false;
    bool given = are_as_they_were(list.data) && read_file(output, &out);
    if (given) {
        given = give(c, &out);
        free(out.data);
    }
    free(list.data);
    return given;
}

/* Of "object: file file \", the lines for KEY.files; false: there is a name with a blank, or a file
 * is gone. */
static bool list_files(const char *rule, text *out) {
    const char *at = strchr(rule, ':');
    char path[PATH_MAX], hex[HEX];
    bool fine = at != NULL && (out->data = malloc(ENOUGH)) != NULL;
    at += fine;
    while (fine) {
        at += strspn(at, " \n\\");
        size_t length = strcspn(at, " \n");
        if (length == 0)
            break;
        (void)snprintf(path, sizeof path, "%.*s", (int)length, at);
        fine = strchr(path, '\\') == NULL && hash_file(path, hex) &&
               out->bytes + length + HEX + 2 < ENOUGH;
        if (fine)
            out->bytes += (size_t)sprintf(out->data + out->bytes, "%s %s\n", hex, path);
        at += length;
    }
    return fine && out->bytes > 0;
}

/* ---- compiling ---- */

static int open_unnamed(void) {
    char name[] = "/tmp/evoke-compiled-XXXXXX";
    int file = mkstemp(name);
    if (file < 0)
        exit(3);
    (void)unlink(name);
    return file;
}

/* The compiler's status, as a shell tells it. */
static int compile(const command *c, const char *compiler, const text *input, int words,
                   const char *output, const char *rule) {
    char *argv[MOST_ARGUMENTS] = {0};
    int status = 0;
    for (int i = 0; i < c->argc; i++)
        argv[i] = i == c->out ? (char *)(uintptr_t)output : c->argv[i];
    argv[c->argc] = "-MD";
    argv[c->argc + 1] = "-MF";
    argv[c->argc + 2] = (char *)(uintptr_t)rule;
    pid_t pid = fork();
    if (pid == 0) {
        if (c->from_stdin) {
            int file = open_unnamed();
            (void)write_all(file, input);
            (void)lseek(file, 0, SEEK_SET);
            (void)dup2(file, STDIN_FILENO);
        }
        (void)dup2(words, STDERR_FILENO);
        (void)execv(compiler, argv);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return 3;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void name(char path[PATH_MAX], const char *folder, const char *key, const char *end) {
    (void)snprintf(path, PATH_MAX, "%.3000s/%.64s.%.64s", folder, key, end);
}

static int compile_and_remember(const command *c, const char *compiler, const text *input,
                                const char *folder, const char *key) {
    char made[PATH_MAX], rule[PATH_MAX], listed[PATH_MAX], files[PATH_MAX], output[PATH_MAX],
        end[32];
    int words = open_unnamed();
    text list = {0}, out = {0}, said = {0}, rules = {0};
    name(files, folder, key, "files");
    name(output, folder, key, "out");
    (void)snprintf(end, sizeof end, "%d.out", (int)getpid());
    name(made, folder, key, end);
    (void)snprintf(end, sizeof end, "%d.d", (int)getpid());
    name(rule, folder, key, end);
    (void)snprintf(end, sizeof end, "%d.files", (int)getpid());
    name(listed, folder, key, end);
    int status = compile(c, compiler, input, words, made, rule);
    (void)lseek(words, 0, SEEK_SET);
    said = read_all(words);
    (void)write_all(STDERR_FILENO, &said);
    bool there = read_file(made, &out);
    if (there && status == 0 && !give(c, &out))
        status = 3;
    if (there && status == 0 && said.bytes == 0 && read_file(rule, &rules) &&
        list_files(rules.data, &list) && write_file(listed, &list) && rename(made, output) == 0)
        (void)rename(listed, files);
    (void)unlink(made);
    (void)unlink(rule);
    (void)unlink(listed);
    free(list.data);
    free(out.data);
    free(said.data);
    free(rules.data);
    return status;
}

static bool find_folder(char path[PATH_MAX]) {
    const char *named = getenv("EVOKE_TEST_COMPILED");
    char self[PATH_MAX];
    if (named != NULL)
        (void)snprintf(path, PATH_MAX, "%s", named);
    else if (realpath("/proc/self/exe", self) != NULL)
        (void)snprintf(path, PATH_MAX, "%.*s/kept", (int)(strrchr(self, '/') - self), self);
    else
        return false;
    return mkdir(path, 0777) == 0 || access(path, W_OK) == 0;
}

int main(int argc, char **argv) {
    char compiler[PATH_MAX], folder[PATH_MAX], key[HEX], files[PATH_MAX], output[PATH_MAX];
    if (!find_compiler(compiler)) {
        (void)fputs("clang-19: there is no other one in PATH\n", stderr);
        return 127;
    }
    command c = read_command(argc, argv);
    if (!c.makes || !find_folder(folder)) {
        (void)execv(compiler, argv);
        return 127;
    }
    text input = {0};
    if (c.from_stdin)
        input = read_all(STDIN_FILENO);
    key_of(&c, compiler, &input, key);
    name(files, folder, key, "files");
    name(output, folder, key, "out");
    int status = give_remembered(&c, files, output)
                     ? 0
                     : compile_and_remember(&c, compiler, &input, folder, key);
    free(input.data);
    return status;
}
