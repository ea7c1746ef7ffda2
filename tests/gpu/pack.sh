#!/usr/bin/env bash
# Makes one folder with all that tests/gpu/run.sh needs on a machine that has a GPU and its driver,
# glibc 2.36, python3, and nothing else: no compiler, no LLVM, no network.
#
#   tests/gpu/pack.sh [FOLDER]        default: build/evoke-gpu
#
# Links evoke and the goldens with archives in build/ (EVOKE_GPU_BUILD names another build folder),
# and compiles the kernels beforehand: every start (EVOKE_GPU_TASKS names the tasks, if not all) for each
# of the targets below (EVOKE_GPU_TARGETS names others), and for EVOKE_GPU_MACROS (h200 unless told) at every value of its macros, which a
# search draws (EVOKE_GPU_VARIED names the tasks, if not all). clang-19 in the folder is a script that
# answers with those.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source=$PWD
build=${EVOKE_GPU_BUILD:-$source/build}
folder=${1:-$source/build/evoke-gpu}
readonly MOST_BYTES=64000000
# One GPU description for each compute capability that a task may be built for.
read -ra TARGETS <<<"${EVOKE_GPU_TARGETS:-v100 t4 a100 rtx4090 h200}"
readonly MACRO_TARGETS=" ${EVOKE_GPU_MACROS-h200} "

say() { printf 'pack: %s\n' "$*" >&2; }

# quiet COMMAND...: its output is shown only when it fails, and then all of it.
quiet() {
  local log status=0
  log=$(mktemp)
  "$@" >"$log" 2>&1 || status=$?
  if ((status != 0)); then
    cat "$log" >&2
    say "exit code $status: $*"
  fi
  rm -f "$log"
  return "$status"
}

build_all() {
  [[ -f $build/build.ninja ]] ||
    quiet cmake -S . -B "$build" -G Ninja -DCMAKE_C_COMPILER=clang-19 -DCMAKE_BUILD_TYPE=Release
  quiet ninja -C "$build" evoke_portable goldens_portable
}

copy_all() {
  rm -rf "$folder"
  mkdir -p "$folder/bin" "$folder/store" "$folder/fitness/model" "$folder/tests/fitness/ptx" "$folder/tests/gpu"
  strip -o "$folder/bin/evoke" "$build/portable/evoke"
  strip -o "$folder/bin/goldens" "$build/portable/goldens"
  cp tests/gpu/clang-19 "$folder/bin/clang-19"
  cp -r kernels "$folder/kernels"
  cp -r fitness/model/gpus "$folder/fitness/model/gpus"
  cp tests/fitness/ptx/goldens_*.txt "$folder/tests/fitness/ptx/"
  cp tests/gpu/run.sh tests/gpu/report.py tests/gpu/check.py tests/gpu/vendor.py "$folder/"
  cp -r tests/gpu/small "$folder/tests/gpu/small"
  if git rev-parse HEAD >"$folder/commit" 2>/dev/null; then
    git diff --quiet HEAD || sed -i 's/$/+/' "$folder/commit" # files that are not the commit's
  else
    rm -f "$folder/commit"
  fi
}

# Prints the calls of a file of calls again, one a line, with the macros of each start at all values.
# Evoke gives every macro to the compiler.
vary_macros() {
  python3 - "$1" <<'PYTHON'
import itertools, json, os, shlex, sys

varied = os.environ.get("EVOKE_GPU_VARIED", "").split()
for line in open(sys.argv[1]):
    words = shlex.split(line)
    folder, source = os.path.split(words[-1])
    if not source.endswith(".cu") or varied and os.path.basename(folder) not in varied:
        continue
    with open(os.path.join(folder, "task.json")) as file:
        starts = [s for s in json.load(file)["starts"] if s["source"] == source]
    for start in starts:
        own = {"-D" + m["name"] for m in start.get("macros", [])}
        rest = [word for word in words[:-1] if word.split("=")[0] not in own]
        each = [["-D%s=%d" % (m["name"], v) for v in sorted({m["default"], *m["values"]})]
                for m in start.get("macros", [])]
        for chosen in itertools.product(*each):
            print(shlex.join(rest + list(chosen) + words[-1:]))
PYTHON
}

# The tasks that are packed, one a line.
packed_tasks() {
  local all=()
  read -ra all <<<"${EVOKE_GPU_TASKS:-}"
  if ((${#all[@]} == 0)); then
    "$folder/bin/evoke" list --json |
      python3 -c 'import json, sys; print(*[t["kernel"] for t in json.load(sys.stdin)["tasks"]], sep="\n")'
  else
    printf '%s\n' "${all[@]}"
  fi
  printf '%s\n' "$folder"/tests/gpu/small/{task,steps}.json
}

# Every start of every task, for every target: the build of one variant asks for them all.
compile_kernels() {
  local target task calls
  calls=$(mktemp)
  export EVOKE_HOME=$folder EVOKE_RECORD=$folder/store EVOKE_CLANG EVOKE_CALLS
  EVOKE_CLANG=$(command -v clang-19)
  for target in "${TARGETS[@]}"; do
    EVOKE_CALLS=
    [[ $MACRO_TARGETS != *" $target "* ]] || EVOKE_CALLS=$calls
    for task in $(packed_tasks); do
      PATH=$folder/bin:$PATH "$folder/bin/evoke" check "$task" --device "vm:$target" \
        --split adversarial >/dev/null || say "$task does not pass on vm:$target"
    done
  done
  EVOKE_CALLS=
  # shellcheck disable=SC2016 # expanded by that shell
  vary_macros "$calls" | tr '\n' '\0' |
    xargs -0 -r -P "$(nproc)" -I CALL bash -c '"$0" CALL >/dev/null' "$folder/bin/clang-19"
  rm -f "$calls"
  unset EVOKE_RECORD EVOKE_CLANG EVOKE_CALLS
}

say "building"
build_all
copy_all
say "compiling kernels for ${TARGETS[*]}"
compile_kernels
bytes=$(du -sb "$folder" | cut -f1)
say "$folder: $bytes bytes, $(find "$folder/store" -type f | wc -l) compiled sources"
if ((bytes > MOST_BYTES)); then
  say "that is more than $MOST_BYTES"
  exit 1
fi
