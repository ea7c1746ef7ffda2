/* cmocka, of whose assertions the analyser learns here that a failed one ends the test. */
#ifndef TESTS_ASSERTS_H
#define TESTS_ASSERTS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#ifdef __clang_analyzer__
#undef assert_non_null
#undef assert_true
#undef fail_msg
#define assert_non_null(c) ((c) ? (void)0 : abort())
#define assert_true(c) ((c) ? (void)0 : abort())
#define fail_msg(...) ((void)printf(__VA_ARGS__), abort())
#endif

#endif
