/* Rooms: tables and logs that take long to make, for one launch's model after another. */
#include "fitness/model/model_state.h"

#include <stdlib.h>

ev_status model_rooms_new(model_rooms **out, ev_error *err) {
    model_rooms *rooms = calloc(1, sizeof *rooms);
    if (rooms == NULL)
        return ev_fail_memory(err, sizeof *rooms);
    ev_status status = model_tables_make(&rooms->tables, err);
    if (status != EV_OK) {
        free(rooms);
        return status;
    }
    *out = rooms;
    return EV_OK;
}

void model_rooms_free(model_rooms *rooms) {
    if (rooms == NULL)
        return;
    for (size_t i = 0; i < MODEL_LEADERS; i++)
        model_log_free(rooms->logs[i]);
    model_tables_free(rooms->tables);
    free(rooms);
}

model_log *model_rooms_log(model_rooms *rooms, size_t number) {
    model_log **log = &rooms->logs[number];
    if (*log != NULL)
        model_log_clear(*log);
    else
        *log = model_log_new();
    return *log;
}
