/* Access costs: what one request takes of the L1 or of the shared memory. */
#ifndef FITNESS_MODEL_ACCESS_ACCESS_COST_H
#define FITNESS_MODEL_ACCESS_ACCESS_COST_H

#include "fitness/model/model_state.h"

/* The cost of the event's access, which is the instruction at `pc`, of that row. It is kept for the
 * instruction's next access, and valid until then. The model owns it. */
access_cost *model_access_cost(model *m, const vm_event *e, uint32_t pc, const model_row *row);

#endif
