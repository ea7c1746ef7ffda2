/* Writes what fuzz_messages starts from: fuzz_messages_corpus FOLDER makes FOLDER/messages, with a
 * sample of each message, and FOLDER/messages.dict, with the names of messages and their fields. */
#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "tests/tuner/worker/message_samples.h"

#include <stdio.h>
#include <stdlib.h>

static ev_status write_text(const char *folder, const char *name, ev_str *text, ev_error *err) {
    char path[1000];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    ev_status status = ev_file_write(path, ev_str_text(text), text->length, err);
    ev_str_free(text);
    return status;
}

static ev_status write_sample(const char *folder, message_kind kind, ev_str *dict, ev_error *err) {
    message m = message_sample(kind);
    json_t *object = NULL, *value = NULL;
    const char *key = NULL;
    ev_status status = message_encode(&m, &object, err);
    message_free(&m);
    EV_TRY(status);
    ev_str text = EV_STR_EMPTY;
    char *printed = ev_json_print(object, true);
    ev_str_append(&text, printed ? printed : "");
    free(printed);
    ev_str_printf(dict, "\"%s\"\n", message_name(kind));
    json_object_foreach(object, key, value) ev_str_printf(dict, "\"%s\"\n", key);
    json_decref(object);
    return write_text(folder, message_name(kind), &text, err);
}

static ev_status write_all(const char *folder, ev_error *err) {
    char messages[1000];
    ev_str dict = EV_STR_EMPTY;
    snprintf(messages, sizeof messages, "%s/messages", folder);
    EV_TRY(ev_dir_make(messages, err));
    ev_status status = EV_OK;
    for (int kind = 0; status == EV_OK && kind < MESSAGE_COUNT; kind++)
        status = write_sample(messages, (message_kind)kind, &dict, err);
    if (status == EV_OK)
        return write_text(folder, "messages.dict", &dict, err);
    ev_str_free(&dict);
    return status;
}

int main(int argc, char **argv) {
    ev_error err = {0};
    if (argc == 2 && write_all(argv[1], &err) == EV_OK)
        return 0;
    fprintf(stderr, "%s\n", argc == 2 ? err.text : "usage: fuzz_messages_corpus FOLDER");
    return 1;
}
