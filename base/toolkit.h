/* Where a CUDA toolkit is, if the user names one. */
#ifndef BASE_TOOLKIT_H
#define BASE_TOOLKIT_H

/* Environment variable: the folder of a CUDA toolkit, whose headers and libdevice a .cu is compiled
 * with in place of evoke_cuda.h; for worker processes, too. */
#define EV_CUDA_PATH "EVOKE_CUDA_PATH"

#endif
