/* OK(call): a status that must be EV_OK; else the test fails with the message, in a variable `err`
 * of the test's own. After cmocka.h. */
#ifndef TESTS_OK_H
#define TESTS_OK_H

#define OK(call)                                                                                   \
    do {                                                                                           \
        err.text[0] = '\0';                                                                        \
        if ((call) != EV_OK)                                                                       \
            fail_msg("%s:%d: %s", __FILE__, __LINE__, err.text);                                   \
    } while (0)

#endif
