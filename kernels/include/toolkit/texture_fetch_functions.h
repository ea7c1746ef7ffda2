/* With --cuda-path: clang-19 includes this header of CUDA, which CUDA 13 has dropped with the
 * texture references. */
#if __has_include_next(<texture_fetch_functions.h>)
#include_next <texture_fetch_functions.h>
#endif
