#!/usr/bin/env bash
# The stand-in is installable by itself: its libraries, its descriptions of GPUs, which it then reads,
# and its README; a program runs on what was installed.
set -euo pipefail
build=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

fail() {
  echo "test_standin_install: $*" >&2
  exit 1
}

cmake --install "$build" --component standin --prefix "$folder" >/dev/null
standin=$folder/lib/evoke-standin
for file in libcuda.so.1 libcuda.so libnvidia-ml.so.1 libcudart.so.12 libcudart.so.13 README.md gpus/h200.json; do
  [[ -f $standin/$file ]] || fail "no $file was installed"
done
descriptions=(fitness/model/gpus/*.json)
[[ $(find "$folder" -type f | wc -l) -eq $((5 + ${#descriptions[@]})) ]] ||
  fail "more was installed than the stand-in: $(find "$folder" -type f)"

grep -q 'A100' "$standin/gpus/a100.json" || fail "the description of the A100 has another name"
sed -i 's/A100/Z100/' "$standin/gpus/a100.json"
said=$(env LD_LIBRARY_PATH="$standin" EVOKE_STANDIN=a100 EVOKE_STANDIN_QUIET=1 \
  "$build/tests/driver_program" examples/driver/kernels.ptx) || fail "the program failed: $said"
[[ $said == *Z100* ]] || fail "the installed description was not read: $said"
[[ $said == *"sgemm of 128: right"* ]] || fail "the program said: $said"
