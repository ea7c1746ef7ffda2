/* libFuzzer target: a line either decodes to a message or is refused with a reason; a message that
 * decodes encodes to JSON that decodes to the same. */
#include "tuner/worker/protocol.h"

#include <stdint.h>
#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds, const char *what, const char *why) {
    if (holds)
        return;
    fprintf(stderr, "%s: %s\n", what, why);
    __builtin_trap();
}

/* Encodes, and decodes it again; the JSON is the caller's. */
static json_t *there_and_back(const message *m, message *back) {
    json_t *object = NULL;
    ev_error err = {0};
    require(message_encode(m, &object, &err) == EV_OK, "a message does not encode", err.text);
    json_incref(object);
    require(message_decode(object, back, &err) == EV_OK, "its JSON does not decode", err.text);
    return object;
}

static void check_message(const message *m) {
    message second = {0}, third = {0};
    json_t *once = there_and_back(m, &second), *twice = there_and_back(&second, &third);
    require(json_equal(once, twice), "another message comes back", message_name(m->kind));
    json_decref(once);
    json_decref(twice);
    message_free(&second);
    message_free(&third);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    json_t *object = json_loadb((const char *)data, size, 0, NULL);
    message m = {0};
    ev_error err = {0};
    if (!json_is_object(object)) {
        json_decref(object);
        return 0;
    }
    if (message_decode(object, &m, &err) == EV_OK)
        check_message(&m);
    else
        require(err.text[0] != '\0', "a refusal", "it has no reason");
    message_free(&m);
    return 0;
}
