/* JUnit: the findings of a check as the XML that Jenkins, GitLab and others read, and as the
 * annotations of GitHub's runners. */
#ifndef TUNER_CHECK_JUNIT_H
#define TUNER_CHECK_JUNIT_H

#include "base/status.h"
#include "base/str.h"

#include <jansson.h>

/* The findings, as `check` has them. */
typedef struct junit_findings {
    const json_t *rows, *replays, *stresses;
} junit_findings;

/* A testsuite for each kernel, a testcase for each row. A finding is a <failure> whose type is its
 * kind (check/verdicts.def), but "setup" is an <error>; a disabled variant is <skipped>. */
void junit_print(const junit_findings *found, ev_str *out);
/* Writes that to a file. EV_BAD: the file cannot be written there. */
ev_status junit_write(const junit_findings *found, const char *path, ev_error *err) EV_CHECKED;

/* "::error file=FILE,title=KERNEL: KIND::REASON" for each finding (GitHub, "Workflow commands"). */
void junit_annotate(const junit_findings *found, const char *file, ev_str *out);

#endif
