/* LLVM's version, apart from all that links LLVM: coordinator and worker compare theirs. */
#include "ir/ir.h"

#include <llvm/Config/llvm-config.h>

const char *ir_llvm_version(void) {
    return LLVM_VERSION_STRING;
}
