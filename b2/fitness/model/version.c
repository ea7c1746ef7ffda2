/* Made by cmake/model_version.cmake. */
#include "fitness/model/version.h"

const char *model_version(void) {
    return "bf214054e69a70fa";
}
