#!/usr/bin/env bash
# Clients in Python on the stand-in, where they are installed: Numba's driver layer (Debian's
# python3-numba) and NVRTC (libnvrtc.so of a CUDA toolkit). Exit code 77: neither is here.
set -euo pipefail
build=$1
ran=0
export LD_LIBRARY_PATH=$build/standin EVOKE_STANDIN=a100 EVOKE_STANDIN_QUIET=1 LC_ALL=C.UTF-8

for python in python3 /usr/bin/python3; do
  "$python" -c 'import numba.cuda' 2>/dev/null || continue
  NUMBA_CUDA_DRIVER=$build/standin/libcuda.so.1 "$python" tests/fitness/device/clients/numba_layer.py \
    examples/driver/kernels.ptx
  ran=1
  break
done

for nvrtc in "${CUDA_HOME:-/usr/local/cuda}"/lib{64,}/libnvrtc.so.1[23]; do
  [[ -r $nvrtc ]] || continue
  LD_LIBRARY_PATH=$LD_LIBRARY_PATH:${nvrtc%/*} python3 tests/fitness/device/clients/nvrtc.py "$nvrtc"
  ran=1
  break
done

[[ $ran == 1 ]] || exit 77
