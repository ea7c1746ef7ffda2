/* Records: the SQLite file of a run, written in one transaction an evaluation.
 *
 * The journal is SQLite's write-ahead log with synchronous=NORMAL: a written transaction survives
 * any end of this process, and an evaluation costs no fsync. Each edit is stored once, and a genome
 * as the numbers of its edits, so rows stay small. Evaluations are a rowid table: without rowids, a
 * row of more than a quarter page would need one more page. */
#include "tuner/run/records.h"

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define APPLICATION_ID 0x45566f6b /* "EVok" in the file's header */

/* ---- the tables ----
 *
 * records_evaluation.def and records_winner.def list the columns behind the key. The schema, the
 * statements, the binding and the reading of rows follow the two lists. */

static const char schema[] =
    "CREATE TABLE run(id INTEGER PRIMARY KEY CHECK(id = 1), identity TEXT NOT NULL);"
    "CREATE TABLE edit(id INTEGER PRIMARY KEY, sha256 BLOB NOT NULL UNIQUE, json TEXT NOT NULL);"
    "CREATE TABLE evaluation(task INTEGER NOT NULL"
#define EVALUATION(kind, name, type, member) ", " #name " " type
#include "tuner/run/records_evaluation.def"
#undef EVALUATION
    ", PRIMARY KEY(task, phase, number));"
    "CREATE TABLE winner(task INTEGER PRIMARY KEY, finished INTEGER NOT NULL"
#define WINNER(kind, name, type) ", " #name " " type
#include "tuner/run/records_winner.def"
#undef WINNER
    ");";

static const char put_evaluation_text[] = "INSERT OR REPLACE INTO evaluation(task"
#define EVALUATION(kind, name, type, member) ", " #name
#include "tuner/run/records_evaluation.def"
#undef EVALUATION
                                          ") VALUES(?"
#define EVALUATION(kind, name, type, member) ", ?"
#include "tuner/run/records_evaluation.def"
#undef EVALUATION
                                          ")";

static const char each_evaluation_text[] =
    "SELECT task"
#define EVALUATION(kind, name, type, member) ", " #name
#include "tuner/run/records_evaluation.def"
#undef EVALUATION
    " FROM evaluation WHERE task = ? AND phase = ? ORDER BY number";

static const char get_evaluation_text[] =
    "SELECT task"
#define EVALUATION(kind, name, type, member) ", " #name
#include "tuner/run/records_evaluation.def"
#undef EVALUATION
    " FROM evaluation WHERE task = ? AND phase = ? AND number = ?";

static const char put_winner_text[] = "INSERT OR REPLACE INTO winner(task, finished"
#define WINNER(kind, name, type) ", " #name
#include "tuner/run/records_winner.def"
#undef WINNER
                                      ") VALUES(?, ?"
#define WINNER(kind, name, type) ", ?"
#include "tuner/run/records_winner.def"
#undef WINNER
                                      ")";

static const char read_winners_text[] = "SELECT task, finished"
#define WINNER(kind, name, type) ", " #name
#include "tuner/run/records_winner.def"
#undef WINNER
                                        " FROM winner ORDER BY task";

/* Columns of a SELECT, from 0; a parameter of an INSERT is one more. */
enum {
    EVALUATION_task,
#define EVALUATION(kind, name, type, member) EVALUATION_##name,
#include "tuner/run/records_evaluation.def"
#undef EVALUATION
};

enum {
    WINNER_task,
    WINNER_finished,
#define WINNER(kind, name, type) WINNER_##name,
#include "tuner/run/records_winner.def"
#undef WINNER
};

enum {
    HASH_COLUMNS = 0
#define COUNT_TEXT
#define COUNT_U64
#define COUNT_U32
#define COUNT_REAL
#define COUNT_GENOME
#define COUNT_HASH +1
#define EVALUATION(kind, name, type, member) COUNT_##kind
#include "tuner/run/records_evaluation.def"
#undef EVALUATION
};

static_assert(HASH_COLUMNS == SEARCH_HASHES, "the records have a column for each hash");

/* The statements that a run repeats. */
typedef enum statement {
    BEGIN,
    COMMIT,
    PUT_EDIT,
    FIND_EDIT,
    READ_EDIT,
    PUT_EVALUATION,
    MARK_KNOWN,
    EACH_EVALUATION,
    GET_EVALUATION,
    STATEMENT_COUNT
} statement;

static const char mark_known_text[] =
    "UPDATE evaluation SET gate = ?, reason = ?, ns = ?, error = ?, score = ''"
    " WHERE task = ? AND phase = 'search' AND number = ?";

static const char *const statement_text[STATEMENT_COUNT] = {
    [BEGIN] = "BEGIN",
    [COMMIT] = "COMMIT",
    [PUT_EDIT] = "INSERT OR IGNORE INTO edit(sha256, json) VALUES(?, ?)",
    [FIND_EDIT] = "SELECT id FROM edit WHERE sha256 = ?",
    [READ_EDIT] = "SELECT json FROM edit WHERE id = ?",
    [PUT_EVALUATION] = put_evaluation_text,
    [MARK_KNOWN] = mark_known_text,
    [EACH_EVALUATION] = each_evaluation_text,
    [GET_EVALUATION] = get_evaluation_text,
};

struct records {
    sqlite3 *db;
    char *path;
    bool writes;
    sqlite3_stmt *statements[STATEMENT_COUNT];
};

/* ---- failures ---- */

static ev_status fail_sqlite(const records *r, const char *what, ev_error *err) {
    int code = r->db ? sqlite3_errcode(r->db) : SQLITE_NOMEM;
    ev_status status = EV_INFRA;
    if (code == SQLITE_NOTADB || code == SQLITE_CORRUPT)
        return ev_fail(err, EV_BAD, "%s is no records file (%s); name another one", r->path,
                       sqlite3_errmsg(r->db));
    if (code == SQLITE_CANTOPEN || code == SQLITE_READONLY || code == SQLITE_PERM)
        status = EV_BAD;
    return ev_fail(err, status, "cannot %s the records %s: %s", what, r->path,
                   r->db ? sqlite3_errmsg(r->db) : "out of memory");
}

static ev_status run_sql(records *r, const char *sql, const char *what, ev_error *err) {
    if (sqlite3_exec(r->db, sql, NULL, NULL, NULL) != SQLITE_OK)
        return fail_sqlite(r, what, err);
    return EV_OK;
}

/* Runs a statement that gives no rows, and makes it ready for its next use. */
static ev_status finish_statement(records *r, sqlite3_stmt *s, ev_error *err) {
    int code = sqlite3_step(s);
    ev_status status = code == SQLITE_DONE ? EV_OK : fail_sqlite(r, "write", err);
    (void)sqlite3_reset(s);
    (void)sqlite3_clear_bindings(s);
    return status;
}

/* ---- small values ---- */

static int hex_digit(char c) {
    return c >= 'a' ? c - 'a' + 10 : c - '0';
}

/* A hash is stored as its 32 bytes; "" and NULL as NULL. */
static void bind_sha256(sqlite3_stmt *s, int column, const char *hex) {
    unsigned char bytes[EV_SHA256_BYTES];
    if (!hex || strlen(hex) != (size_t)2 * EV_SHA256_BYTES)
        return;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(hex_digit(hex[2 * i]) << 4 | hex_digit(hex[2 * i + 1]));
    (void)sqlite3_bind_blob(s, column, bytes, sizeof bytes, SQLITE_TRANSIENT);
}

static void read_sha256(sqlite3_stmt *s, int column, char hex[EV_SHA256_HEX]) {
    const unsigned char *bytes = sqlite3_column_blob(s, column);
    hex[0] = '\0';
    for (int i = 0; bytes && i < sqlite3_column_bytes(s, column) && i < EV_SHA256_BYTES; i++)
        snprintf(hex + (size_t)2 * (size_t)i, 3, "%02x", bytes[i]);
}

static void bind_text(sqlite3_stmt *s, int column, const char *text) {
    (void)sqlite3_bind_text(s, column, text ? text : "", -1, SQLITE_TRANSIENT);
}

static const char *read_text(sqlite3_stmt *s, int column) {
    const char *text = (const char *)sqlite3_column_text(s, column);
    return text ? text : "";
}

static ev_status read_pragma(records *r, const char *sql, int64_t *out, ev_error *err) {
    sqlite3_stmt *s = NULL;
    if (sqlite3_prepare_v2(r->db, sql, -1, &s, NULL) != SQLITE_OK)
        return fail_sqlite(r, "read", err);
    ev_status status = EV_OK;
    if (sqlite3_step(s) == SQLITE_ROW)
        *out = sqlite3_column_int64(s, 0);
    else
        status = fail_sqlite(r, "read", err);
    (void)sqlite3_finalize(s);
    return status;
}

ev_status records_bytes(records *r, uint64_t *out, ev_error *err) {
    int64_t pages = 0, size = 0;
    EV_TRY(read_pragma(r, "PRAGMA page_count", &pages, err));
    EV_TRY(read_pragma(r, "PRAGMA page_size", &size, err));
    *out = (uint64_t)(pages * size);
    return EV_OK;
}

/* ---- opening ---- */

void records_close(records *r) {
    if (!r)
        return;
    for (size_t i = 0; i < STATEMENT_COUNT; i++)
        (void)sqlite3_finalize(r->statements[i]);
    /* A finished file stands alone: no log beside it. Where that fails, the log stays valid. */
    if (r->writes)
        (void)sqlite3_exec(r->db, "PRAGMA journal_mode = DELETE", NULL, NULL, NULL);
    (void)sqlite3_close(r->db);
    free(r->path);
    free(r);
}

static ev_status open_file(const char *path, int flags, records **out, ev_error *err) {
    records *r = calloc(1, sizeof *r);
    if (!r)
        return ev_fail_memory(err, sizeof *r);
    r->path = strdup(*path ? path : "(temporary)");
    ev_status status = EV_OK;
    if (!r->path)
        status = ev_fail_memory(err, strlen(path) + 1);
    else if (sqlite3_open_v2(path, &r->db, flags, NULL) != SQLITE_OK)
        status = fail_sqlite(r, "open", err);
    else
        (void)sqlite3_busy_timeout(r->db, 5000);
    if (status != EV_OK) {
        records_close(r);
        return status;
    }
    *out = r;
    return EV_OK;
}

static ev_status prepare_all(records *r, ev_error *err) {
    for (size_t i = 0; i < STATEMENT_COUNT; i++) {
        if (sqlite3_prepare_v3(r->db, statement_text[i], -1, SQLITE_PREPARE_PERSISTENT,
                               &r->statements[i], NULL) != SQLITE_OK)
            return fail_sqlite(r, "open", err);
    }
    return EV_OK;
}

static ev_status prepare_writer(records *r, ev_error *err) {
    r->writes = true;
    EV_TRY(run_sql(r, "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;", "open", err));
    return prepare_all(r, err);
}

static ev_status check_version(records *r, ev_error *err) {
    int64_t application = 0, version = 0;
    EV_TRY(read_pragma(r, "PRAGMA application_id", &application, err));
    EV_TRY(read_pragma(r, "PRAGMA user_version", &version, err));
    if (application != APPLICATION_ID)
        return ev_fail(err, EV_BAD, "%s is no records file; name another one", r->path);
    if (version != RECORDS_VERSION)
        return ev_fail(
            err, EV_BAD,
            "%s holds records of version %lld and this program reads version %d; use the "
            "program that wrote it, or name another file",
            r->path, (long long)version, RECORDS_VERSION);
    return EV_OK;
}

static ev_status open_existing(const char *path, records **out, ev_error *err) {
    if (!ev_path_exists(path))
        return ev_fail(err, EV_BAD, "there are no records %s", path);
    records *r = NULL;
    EV_TRY(open_file(path, SQLITE_OPEN_READWRITE, &r, err));
    ev_status status = check_version(r, err);
    if (status != EV_OK) {
        records_close(r);
        return status;
    }
    *out = r;
    return EV_OK;
}

ev_status records_open_read(const char *path, records **out, ev_error *err) {
    records *r = NULL;
    EV_TRY(open_existing(path, &r, err));
    ev_status status = prepare_all(r, err);
    if (status != EV_OK) {
        records_close(r);
        return status;
    }
    *out = r;
    return EV_OK;
}

/* Creates the file exclusively, so that an existing file is never touched, even in a race. */
static ev_status claim_path(const char *path, ev_error *err) {
    int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
    if (fd >= 0) {
        (void)close(fd);
        return EV_OK;
    }
    if (errno == EEXIST)
        return ev_fail(err, EV_BAD,
                       "the records %s exist already; go on with them by --resume, or name another "
                       "file by --records",
                       path);
    ev_status status = errno == ENOSPC || errno == EIO || errno == EMFILE ? EV_INFRA : EV_BAD;
    return ev_fail(err, status, "cannot make the records %s: %s", path, strerror(errno));
}

static ev_status write_schema(records *r, const json_t *identity, ev_error *err) {
    char *text = ev_json_print(identity, true);
    if (!text)
        return ev_fail_memory(err, 0);
    char *sql = sqlite3_mprintf("BEGIN;%s PRAGMA application_id = %d; PRAGMA user_version = %d;"
                                " INSERT INTO run VALUES(1, %Q); COMMIT;",
                                schema, APPLICATION_ID, RECORDS_VERSION, text);
    free(text);
    ev_status status = sql ? run_sql(r, sql, "make", err) : ev_fail_memory(err, sizeof schema);
    sqlite3_free(sql);
    return status;
}

ev_status records_create(const char *path, const json_t *identity, records **out, ev_error *err) {
    assert(json_is_object(identity));
    if (path)
        EV_TRY(claim_path(path, err));
    records *r = NULL;
    ev_status status =
        open_file(path ? path : "", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, &r, err);
    if (status == EV_OK)
        status = write_schema(r, identity, err);
    if (status == EV_OK)
        status = prepare_writer(r, err);
    if (status != EV_OK) {
        records_close(r);
        if (path)
            (void)unlink(path);
        return status;
    }
    *out = r;
    return EV_OK;
}

/* ---- identity ---- */

/* Whether the build, not the command line, gives this key. */
static bool is_of_build(const char *key) {
    return strcmp(key, "evoke") == 0 || strcmp(key, "protocol") == 0 || strcmp(key, "llvm") == 0 ||
           strcmp(key, "model") == 0;
}

static ev_status fail_identity(const records *r, const char *key, const json_t *theirs,
                               const json_t *ours, ev_error *err) {
    char *a = theirs ? ev_json_print(theirs, true) : NULL;
    char *b = ours ? ev_json_print(ours, true) : NULL;
    ev_status status = ev_fail(
        err, EV_BAD,
        "cannot resume %s: its run has %s = %s and this one %s; %s, or name another file by "
        "--records",
        r->path, key, a ? a : "nothing", b ? b : "nothing",
        is_of_build(key) ? "use the build that began it" : "give what that run was given");
    free(a);
    free(b);
    return status;
}

static ev_status compare_identity(records *r, const json_t *theirs, const json_t *ours,
                                  ev_error *err) {
    const char *key = NULL;
    json_t *value = NULL;
    json_object_foreach((json_t *)ours, key, value) {
        if (!json_equal(json_object_get(theirs, key), value))
            return fail_identity(r, key, json_object_get(theirs, key), value, err);
    }
    json_object_foreach((json_t *)theirs, key, value) {
        if (!json_object_get(ours, key))
            return fail_identity(r, key, value, NULL, err);
    }
    return EV_OK;
}

ev_status records_identity(records *r, json_t **out, ev_error *err) {
    sqlite3_stmt *s = NULL;
    if (sqlite3_prepare_v2(r->db, "SELECT identity FROM run", -1, &s, NULL) != SQLITE_OK)
        return fail_sqlite(r, "read", err);
    ev_status status = EV_OK;
    ev_json *theirs = NULL;
    int code = sqlite3_step(s);
    if (code == SQLITE_DONE)
        status = ev_fail(err, EV_BAD, "%s holds no run; name another file by --records", r->path);
    else if (code != SQLITE_ROW)
        status = fail_sqlite(r, "read", err);
    else
        status = ev_json_parse(read_text(s, 0), r->path, &theirs, err);
    (void)sqlite3_finalize(s);
    if (theirs != NULL) /* the identity was read */
        *out = json_incref(theirs->root);
    ev_json_free(theirs);
    return status;
}

static ev_status check_identity(records *r, const json_t *identity, ev_error *err) {
    json_t *theirs = NULL;
    EV_TRY(records_identity(r, &theirs, err));
    ev_status status = compare_identity(r, theirs, identity, err);
    json_decref(theirs);
    return status;
}

ev_status records_resume(const char *path, const json_t *identity, records **out, ev_error *err) {
    records *r = NULL;
    ev_status status = open_existing(path, &r, err);
    if (status != EV_OK)
        return ev_wrap(err, status, "--resume");
    status = check_identity(r, identity, err);
    if (status == EV_OK)
        status = prepare_writer(r, err);
    if (status != EV_OK) {
        records_close(r);
        return status;
    }
    *out = r;
    return EV_OK;
}

/* ---- genomes as lists of edits ---- */

static ev_status put_edit(records *r, const json_t *edit, int64_t *id, ev_error *err) {
    char *text = ev_json_print(edit, true);
    if (!text)
        return ev_fail_memory(err, 0);
    ev_sha256 sha = ev_sha256_of(text, strlen(text));
    sqlite3_stmt *put = r->statements[PUT_EDIT], *find = r->statements[FIND_EDIT];
    bind_sha256(put, 1, sha.hex);
    bind_text(put, 2, text);
    free(text);
    EV_TRY(finish_statement(r, put, err));
    bind_sha256(find, 1, sha.hex);
    ev_status status = EV_OK;
    if (sqlite3_step(find) == SQLITE_ROW)
        *id = sqlite3_column_int64(find, 0);
    else
        status = fail_sqlite(r, "write", err);
    (void)sqlite3_reset(find);
    return status;
}

/* The genome as JSON, with numbers in place of its edits; malloc'ed. */
static ev_status pack_genome(records *r, const json_t *genome, char **out, ev_error *err) {
    json_t *packed = json_copy((json_t *)genome);
    json_t *numbers = json_array();
    const json_t *edits = json_object_get(genome, "edits");
    ev_status status = packed && numbers ? EV_OK : ev_fail_memory(err, 0);
    for (size_t i = 0; status == EV_OK && i < json_array_size(edits); i++) {
        int64_t id = 0;
        status = put_edit(r, json_array_get(edits, i), &id, err);
        if (status == EV_OK && json_array_append_new(numbers, json_integer(id)) != 0)
            status = ev_fail_memory(err, 0);
    }
    if (status == EV_OK && json_object_set(packed, "edits", numbers) != 0)
        status = ev_fail_memory(err, 0);
    if (status == EV_OK && !(*out = ev_json_print(packed, true)))
        status = ev_fail_memory(err, 0);
    json_decref(numbers);
    json_decref(packed);
    return status;
}

static ev_status read_edit(records *r, json_int_t id, json_t *into, ev_error *err) {
    sqlite3_stmt *s = r->statements[READ_EDIT];
    (void)sqlite3_bind_int64(s, 1, id);
    json_t *edit = NULL;
    int code = sqlite3_step(s);
    if (code != SQLITE_ROW && code != SQLITE_DONE) {
        ev_status status = fail_sqlite(r, "read", err);
        (void)sqlite3_reset(s);
        return status;
    }
    if (code == SQLITE_ROW)
        edit = json_loads(read_text(s, 0), JSON_DECODE_ANY, NULL);
    (void)sqlite3_reset(s);
    if (!edit || json_array_append_new(into, edit) != 0)
        return ev_fail(err, EV_BAD, "%s: a genome names the edit %lld, which is not there", r->path,
                       (long long)id);
    return EV_OK;
}

static ev_status unpack_genome(records *r, const char *text, json_t **out, ev_error *err) {
    json_t *genome = json_loads(text, 0, NULL);
    json_t *edits = json_array();
    ev_status status = EV_OK;
    if (!genome || !edits)
        status = ev_fail(err, EV_BAD, "%s: a genome that cannot be read: %.80s", r->path, text);
    const json_t *numbers = json_object_get(genome, "edits");
    for (size_t i = 0; status == EV_OK && i < json_array_size(numbers); i++)
        status = read_edit(r, json_integer_value(json_array_get(numbers, i)), edits, err);
    if (status == EV_OK && json_object_set(genome, "edits", edits) != 0)
        status = ev_fail_memory(err, 0);
    json_decref(edits);
    if (status == EV_OK)
        *out = genome;
    else
        json_decref(genome);
    return status;
}

/* ---- evaluations ---- */

#define BIND_TEXT(at, value) bind_text(s, at, value);
#define BIND_U64(at, value) (void)sqlite3_bind_int64(s, at, (int64_t)(value));
#define BIND_U32(at, value) (void)sqlite3_bind_int64(s, at, value);
#define BIND_INT(at, value) (void)sqlite3_bind_int64(s, at, value);
#define BIND_FLAG(at, value) (void)sqlite3_bind_int64(s, at, value);
#define BIND_REAL(at, value) (void)sqlite3_bind_double(s, at, value);

/* `genome`: packed; NULL: there is none. */
static ev_status put_row(records *r, const records_evaluation *e, const char *genome,
                         ev_error *err) {
    sqlite3_stmt *s = r->statements[PUT_EVALUATION];
    (void)sqlite3_bind_int64(s, EVALUATION_task + 1, (int64_t)e->task);
#define ROW_TEXT(at, member) BIND_TEXT(at, e->member)
#define ROW_U64(at, member) BIND_U64(at, e->member)
#define ROW_U32(at, member) BIND_U32(at, e->member)
#define ROW_REAL(at, member) BIND_REAL(at, e->member)
#define ROW_HASH(at, by) bind_sha256(s, at, e->hashes[by]);
#define ROW_GENOME(at, member)                                                                     \
    if (member)                                                                                    \
        bind_text(s, at, member);
#define EVALUATION(kind, name, type, member) ROW_##kind(EVALUATION_##name + 1, member)
#include "tuner/run/records_evaluation.def"
#undef EVALUATION
    return finish_statement(r, s, err);
}

static ev_status put_evaluation(records *r, const records_evaluation *e, ev_error *err) {
    char *genome = NULL;
    if (e->genome)
        EV_TRY(pack_genome(r, e->genome, &genome, err));
    ev_status status = put_row(r, e, genome, err);
    free(genome);
    return status;
}

ev_status records_put(records *r, const records_evaluation *evaluation, ev_error *err) {
    assert(r->writes);
    EV_TRY(finish_statement(r, r->statements[BEGIN], err));
    ev_status status = put_evaluation(r, evaluation, err);
    if (status == EV_OK)
        status = finish_statement(r, r->statements[COMMIT], err);
    if (status != EV_OK && !sqlite3_get_autocommit(r->db))
        (void)sqlite3_exec(r->db, "ROLLBACK", NULL, NULL, NULL);
    return status;
}

ev_status records_mark_known(records *r, const records_evaluation *known, ev_error *err) {
    sqlite3_stmt *s = r->statements[MARK_KNOWN];
    bind_text(s, 1, known->gate);
    bind_text(s, 2, known->reason);
    (void)sqlite3_bind_double(s, 3, known->ns);
    (void)sqlite3_bind_double(s, 4, known->error);
    (void)sqlite3_bind_int64(s, 5, (int64_t)known->task);
    (void)sqlite3_bind_int64(s, 6, (int64_t)known->number);
    return finish_statement(r, s, err);
}

#define READ_TEXT(at) read_text(s, at)
#define READ_U64(at) (uint64_t)sqlite3_column_int64(s, at)
#define READ_U32(at) (uint32_t)sqlite3_column_int64(s, at)
#define READ_INT(at) sqlite3_column_int(s, at)
#define READ_FLAG(at) sqlite3_column_int(s, at) != 0
#define READ_REAL(at) sqlite3_column_double(s, at)

static ev_status read_row(records *r, sqlite3_stmt *s, char hashes[SEARCH_HASHES][EV_SHA256_HEX],
                          records_evaluation *e, json_t **genome, ev_error *err) {
    *genome = NULL;
    if (sqlite3_column_type(s, EVALUATION_genome) != SQLITE_NULL)
        EV_TRY(unpack_genome(r, read_text(s, EVALUATION_genome), genome, err));
    *e = (records_evaluation){.task = (size_t)sqlite3_column_int64(s, EVALUATION_task)};
#define TAKE_TEXT(at, member) e->member = READ_TEXT(at);
#define TAKE_U64(at, member) e->member = READ_U64(at);
#define TAKE_U32(at, member) e->member = READ_U32(at);
#define TAKE_REAL(at, member) e->member = READ_REAL(at);
#define TAKE_GENOME(at, member) e->member = *genome;
#define TAKE_HASH(at, by)                                                                          \
    read_sha256(s, at, hashes[by]);                                                                \
    e->hashes[by] = hashes[by];
#define EVALUATION(kind, name, type, member) TAKE_##kind(EVALUATION_##name, member)
#include "tuner/run/records_evaluation.def"
#undef EVALUATION
    return EV_OK;
}

/* Calls `each` for all rows of a bound statement, and makes it ready for its next use. */
static ev_status read_rows(records *r, sqlite3_stmt *s, records_fn *each, void *context,
                           size_t *count, ev_error *err) {
    ev_status status = EV_OK;
    int code = SQLITE_ROW;
    while (status == EV_OK && (code = sqlite3_step(s)) == SQLITE_ROW) {
        char hashes[SEARCH_HASHES][EV_SHA256_HEX];
        records_evaluation e;
        json_t *genome = NULL;
        status = read_row(r, s, hashes, &e, &genome, err);
        if (status == EV_OK)
            status = each(context, &e, err);
        json_decref(genome);
        *count += 1;
    }
    if (status == EV_OK && code != SQLITE_DONE)
        status = fail_sqlite(r, "read", err);
    (void)sqlite3_reset(s);
    (void)sqlite3_clear_bindings(s);
    return status;
}

ev_status records_each(records *r, size_t at, const char *phase, records_fn *each, void *context,
                       ev_error *err) {
    sqlite3_stmt *s = r->statements[EACH_EVALUATION];
    size_t count = 0;
    (void)sqlite3_bind_int64(s, 1, (int64_t)at);
    bind_text(s, 2, phase);
    return read_rows(r, s, each, context, &count, err);
}

ev_status records_get(records *r, size_t at, const char *phase, uint64_t number, records_fn *each,
                      void *context, bool *found, ev_error *err) {
    sqlite3_stmt *s = r->statements[GET_EVALUATION];
    size_t count = 0;
    (void)sqlite3_bind_int64(s, 1, (int64_t)at);
    bind_text(s, 2, phase);
    (void)sqlite3_bind_int64(s, 3, (int64_t)number);
    ev_status status = read_rows(r, s, each, context, &count, err);
    *found = count > 0;
    return status;
}

/* ---- winners ---- */

ev_status records_put_winner(records *r, size_t at, const records_winner *winner, bool finished,
                             ev_error *err) {
    sqlite3_stmt *s = NULL;
    if (sqlite3_prepare_v2(r->db, put_winner_text, -1, &s, NULL) != SQLITE_OK)
        return fail_sqlite(r, "write", err);
    (void)sqlite3_bind_int64(s, WINNER_task + 1, (int64_t)at);
    (void)sqlite3_bind_int64(s, WINNER_finished + 1, finished);
#define WINNER(kind, name, type) BIND_##kind(WINNER_##name + 1, winner->name)
#include "tuner/run/records_winner.def"
#undef WINNER
    ev_status status = finish_statement(r, s, err);
    (void)sqlite3_finalize(s);
    return status;
}

ev_status records_finished(records *r, size_t at, bool *out, ev_error *err) {
    sqlite3_stmt *s = NULL;
    if (sqlite3_prepare_v2(r->db, "SELECT finished FROM winner WHERE task = ?", -1, &s, NULL) !=
        SQLITE_OK)
        return fail_sqlite(r, "read", err);
    (void)sqlite3_bind_int64(s, 1, (int64_t)at);
    int code = sqlite3_step(s);
    *out = code == SQLITE_ROW && sqlite3_column_int64(s, 0) != 0;
    ev_status status =
        code == SQLITE_ROW || code == SQLITE_DONE ? EV_OK : fail_sqlite(r, "read", err);
    (void)sqlite3_finalize(s);
    return status;
}

/* Reads a winner from a row. False: out of memory. */
static bool read_winner(sqlite3_stmt *s, records_winner *w) {
    bool ok = true;
    *w = (records_winner){.task = (size_t)sqlite3_column_int64(s, 0)};
#define OWN_TEXT(at, name) ok = (w->name = strdup(READ_TEXT(at))) != NULL && ok;
#define OWN_INT(at, name) w->name = READ_INT(at);
#define OWN_U64(at, name) w->name = READ_U64(at);
#define OWN_FLAG(at, name) w->name = READ_FLAG(at);
#define WINNER(kind, name, type) OWN_##kind(WINNER_##name, name)
#include "tuner/run/records_winner.def"
#undef WINNER
    return ok;
}

void records_winners_free(records_winner *winners, size_t count) {
    for (size_t i = 0; i < count; i++) {
#define FREE_TEXT(name) free((char *)winners[i].name);
#define FREE_INT(name)
#define FREE_U64(name)
#define FREE_FLAG(name)
#define WINNER(kind, name, type) FREE_##kind(name)
#include "tuner/run/records_winner.def"
#undef WINNER
    }
    free(winners);
}

ev_status records_winners(records *r, records_winner **out, size_t *count, ev_error *err) {
    sqlite3_stmt *s = NULL;
    if (sqlite3_prepare_v2(r->db, read_winners_text, -1, &s, NULL) != SQLITE_OK)
        return fail_sqlite(r, "read", err);
    records_winner *list = NULL;
    size_t n = 0;
    int code = SQLITE_ROW;
    bool ok = true;
    while (ok && (code = sqlite3_step(s)) == SQLITE_ROW) {
        records_winner *more = realloc(list, (n + 1) * sizeof *list);
        ok = more != NULL;
        if (!ok)
            break;
        list = more;
        ok = read_winner(s, &list[n++]);
    }
    ev_status status = EV_OK;
    if (!ok)
        status = ev_fail_memory(err, (n + 1) * sizeof *list);
    else if (code != SQLITE_DONE)
        status = fail_sqlite(r, "read", err);
    (void)sqlite3_finalize(s);
    if (status != EV_OK) {
        records_winners_free(list, n);
        return status;
    }
    *out = list;
    *count = n;
    return EV_OK;
}
