/* A worker that only pretends to compile: test_worker_pool runs it. It draws a child as
 * its parent with one more edit at a random number; the numbers below have effects.
 * EVOKE_FAULT=KIND:CHILD lets it misbehave once, at that child; EVOKE_FAULT_MARKER names a file
 * that says it has. */
#ifndef TESTS_TUNER_WORKER_FAKE_WORKER_H
#define TESTS_TUNER_WORKER_FAKE_WORKER_H

#define NUMBERS 40

enum { CHEAT = 7, PAIR_A = 9, PAIR_B = 11, ABORTS = 13, FAILS = 17, LOWERED = 20, TRAPS = 23 };

static const int gains[] = {3, 14, 19, 21}; /* each pays by itself */

#endif
