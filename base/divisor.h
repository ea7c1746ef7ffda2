/* The greatest common divisor. */
#ifndef BASE_DIVISOR_H
#define BASE_DIVISOR_H

#include <stdint.h>

/* That of 0 and a number is the number. */
static inline uint64_t ev_divisor(uint64_t a, uint64_t b) {
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* The same of whole numbers with signs; 0 or above. Neither is INT64_MIN. */
static inline int64_t ev_divisor_signed(int64_t a, int64_t b) {
    uint64_t x = (uint64_t)a, y = (uint64_t)b;
    return (int64_t)ev_divisor(a < 0 ? 0 - x : x, b < 0 ? 0 - y : y);
}

#endif
