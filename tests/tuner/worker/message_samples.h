/* A sample of each message, with a value in every field. */
#ifndef TESTS_TUNER_WORKER_MESSAGE_SAMPLES_H
#define TESTS_TUNER_WORKER_MESSAGE_SAMPLES_H

#include "tuner/worker/protocol.h"

/* Free with message_free. */
message message_sample(message_kind kind);

#endif
