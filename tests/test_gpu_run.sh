#!/usr/bin/env bash
# tests/gpu/run.sh on the stand-in for the driver: its parts, its table, what happens when one
# fails; and the script that stands for a compiler where there is none.
set -euo pipefail
build=$1
readonly SKIPPED=77
command -v python3 >/dev/null || exit "$SKIPPED" # the machine it is made for has one

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export LD_LIBRARY_PATH=$build/standin EVOKE_STANDIN=h200 EVOKE_STANDIN_QUIET=1 EVOKE_BIN=$build

fail() {
  printf 'test_gpu_run: %s\n' "$*" >&2
  exit 1
}

# run STATUS WORDS...: run.sh ends with STATUS; its output is in $folder/table.
run() {
  local wanted=$1 got=0
  shift
  bash tests/gpu/run.sh --small --out "$folder/out" "$@" >"$folder/table" 2>"$folder/errors" || got=$?
  if [[ $got != "$wanted" ]]; then
    cat "$folder/table" "$folder/errors" "$folder"/out/*.log >&2
    fail "exit code $got, not $wanted: $*"
  fi
}

has() {
  grep -Eq -- "$1" "$2" || {
    cat "$2" >&2
    fail "'$1' is not in $2"
  }
}

# One part after another, alone and together.
run 0 --parts calibrate,times
has '^cuda:0, NVIDIA H200 .*times are modelled' "$folder/table"
has '^calibrate +done .*1 of 1 figures, modelled' "$folder/table"
has '^times +done .*[0-9]+ cases; hand-tuned over textbook' "$folder/table"
python3 -c '
import json, sys
r = json.load(open(sys.argv[1]))
assert r["device"]["time_kind"] == "modelled" and r["device"]["driver"].startswith("CUDA driver")
assert set(r["parts"]) == {"calibrate", "times"} and not r["parts"]["times"]["failed"]
rows = r["parts"]["times"]["result"]["rows"]
assert rows and all(x["textbook_ns"] > 0 and x["hand_ns"] > 0 for x in rows)
' "$folder/out/results.json" || fail "results.json"

run 0 --parts rank
has '^rank +done .*12 variants against gpu.json' "$folder/table"

# A part that fails is said, the next one runs, and the whole fails.
mkdir "$folder/bin"
ln -s "$build/evoke" "$folder/bin/evoke" # and no goldens
EVOKE_BIN=$folder/bin run 1 --parts agree,calibrate
has '^agree +FAILED .*kernels alike.*goldens: exit code 127' "$folder/table"
has '^calibrate +done' "$folder/table"

run 2 --parts agree,dance
run 3 --device cuda:7

# What was compiled beforehand is found again by its contents, wherever it stands; nothing else is.
shim=$folder/shim/bin
mkdir -p "$shim" "$folder/shim/store" "$folder/small"
cp tests/gpu/clang-19 "$shim/"
cp tests/gpu/small/* "$folder/small/"
check() { PATH=$shim:$PATH "$build/evoke" check "$folder/small/task.json" --device vm:h200 --split adversarial; }
EVOKE_RECORD=$folder/shim/store EVOKE_CLANG=$(command -v clang-19) check >/dev/null || fail "recording"
[[ $(find "$folder/shim/store" -type f | wc -l) == 3 ]] || fail "two starts and an oracle make three files"
mv "$folder/small" "$folder/moved" && ln -s "$folder/moved" "$folder/small"
check >/dev/null || fail "what was recorded is not found"
echo '// changed' >>"$folder/moved/hand.cu"
if check >/dev/null 2>"$folder/errors"; then fail "a source that nobody compiled was found"; fi
has 'was not compiled beforehand' "$folder/errors"
