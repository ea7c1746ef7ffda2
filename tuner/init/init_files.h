/* The files of a new task: all are written into a folder beside, which then takes its name. */
#ifndef TUNER_INIT_INIT_FILES_H
#define TUNER_INIT_INIT_FILES_H

#include "tuner/cli/cmd.h"
#include "tuner/init/draft.h"

typedef struct init_files {
    const char *path;   /* of the source */
    const char *source; /* its name without folders */
    char *folder, *made;
} init_files;

/* Makes the folder `made`. `kernel`: names the task's folder, unless --out does. EV_BAD: one of
 * the folders is there. */
ev_status init_files_open(const cmd_context *c, const char *kernel, init_files *f,
                          ev_error *err) EV_CHECKED;
/* Copies the source, and the headers that it includes in quotes and that lie beside it. */
ev_status init_files_copy(const init_files *f, draft *d, ev_error *err) EV_CHECKED;
/* Appends the PTX of the copied source. What clang says names the user's own file. */
ev_status init_files_build(const init_files *f, const draft *d, ev_str *ptx,
                           ev_error *err) EV_CHECKED;
/* Writes task.json; a draft that runs must load. `cases`: as of draft_write. */
ev_status init_files_task(const init_files *f, const draft *d, const char *cases,
                          ev_error *err) EV_CHECKED;
/* Gives `made` its name, or after a failure removes it. Returns the status. */
ev_status init_files_close(const init_files *f, ev_status status, ev_error *err) EV_CHECKED;
/* Prints the commands that a user runs next. */
void init_files_tell_next(const cmd_context *c, const init_files *f);
void init_files_free(init_files *f);

/* evoke init --from-run */
ev_status init_from_run(cmd_context *c, ev_error *err) EV_CHECKED;

#endif
