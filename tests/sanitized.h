/* Whether the test is built with the address sanitizer, under which the same work takes many times
 * as long. */
#ifndef EVOKE_TESTS_SANITIZED_H
#define EVOKE_TESTS_SANITIZED_H

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#if !defined(SANITIZED) && !defined(__SANITIZE_ADDRESS__)
#define SANITIZED 0
#elif !defined(SANITIZED)
#define SANITIZED 1
#endif

#endif
