#!/usr/bin/env bash
# tests/gpu/pack.sh from here, and run.sh in the folder that it made, with an empty environment, no
# compiler in PATH, and the source tree hidden where the system allows it: on the stand-in, all parts.
set -euo pipefail
build=$1
readonly SKIPPED=77
command -v python3 >/dev/null || exit "$SKIPPED"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

fail() {
  printf 'test_gpu_pack: %s\n' "$*" >&2
  exit 1
}

# What goes wrong is shown.
mkdir "$folder/broken"
echo 'no rule at all' >"$folder/broken/build.ninja"
if EVOKE_GPU_BUILD=$folder/broken bash tests/gpu/pack.sh "$folder/none" 2>"$folder/errors"; then
  fail "a build folder that is none was good enough"
fi
grep -q 'build.ninja:1: expected' "$folder/errors" || fail "ninja's own words are not shown: $(<"$folder/errors")"

# Two targets, a task of each family, the one that run.sh --small takes, and one task's macros stand for all.
EVOKE_GPU_BUILD=$build EVOKE_GPU_TARGETS="t4 h200" EVOKE_GPU_VARIED=ar_adam \
  EVOKE_GPU_TASKS="ar_adam ar_oneshot fft_conv2d sd_lstm_fp bp_data_masked" \
  bash tests/gpu/pack.sh "$folder/pack" 2>"$folder/errors" || fail "$(<"$folder/errors")"
! grep 'does not pass' "$folder/errors" || fail "a packed task does not pass"
pack=$folder/pack
[[ $(git rev-parse HEAD 2>/dev/null) == "$(sed 's/+$//' "$pack/commit" 2>/dev/null)" ]] || fail "the commit"

# It needs the C library alone, and none later than Debian 12's.
for binary in evoke goldens; do
  needed=$(ldd "$pack/bin/$binary" | sed -n 's/^\t\(lib[a-z]*\)\..*/\1/p' | sort | tr '\n' ' ')
  [[ $needed == 'libc libm ' ]] || fail "$binary needs $needed"
  last=$(grep -ao 'GLIBC_2\.[0-9]*' "$pack/bin/$binary" | sort -uV | tail -n 1)
  [[ ${last#GLIBC_2.} -le 36 ]] || fail "$binary needs $last"
done

# A PATH with what every system has, and no compiler.
mkdir "$folder/bin"
ln -s "$(python3 -c 'import sys; print(sys.executable)')" "$folder/bin/python3"
for tool in bash cat cp cut date dirname env gzip mkdir mktemp mv rm sh sha256sum timeout tr uname; do
  ln -s "$(command -v "$tool")" "$folder/bin/$tool"
done
mkdir "$folder/driver"
cp "$build"/standin/*.so.1 "$folder/driver/"

away=(bash -c)
# shellcheck disable=SC2016 # expanded by that shell
hidden='mount -t tmpfs none "$0" && exec bash -c "$1"'
if unshare -rm true 2>/dev/null; then
  away=(unshare -rm bash -c "$hidden" "$PWD")
fi
"${away[@]}" "cd '$folder' && exec env -i PATH='$folder/bin' LD_LIBRARY_PATH='$folder/driver' \
  EVOKE_STANDIN=h200 EVOKE_STANDIN_QUIET=1 pack/run.sh --small --out results" \
  >"$folder/table" 2>"$folder/log" ||
  fail "run.sh: $(cat "$folder/table" "$folder/log" "$folder"/results/*.log)"

# A search draws macros; every value that it may draw was compiled.
env -i PATH="$pack/bin:$folder/bin" EVOKE_HOME="$pack" "$pack/bin/evoke" tune ar_adam --device vm:h200 \
  --evaluations 60 --records "$folder/records" >/dev/null 2>"$folder/log" || fail "tune: $(<"$folder/log")"
python3 -c '
import sqlite3, sys
rows = sqlite3.connect(sys.argv[1]).execute("select genome, coalesce(reason, char(45)) from evaluation").fetchall()
assert any("BLOCK" in genome for genome, _ in rows), "no macro was drawn"
assert not any("beforehand" in reason for _, reason in rows), [r for _, r in rows if "beforehand" in r][0]
' "$folder/records" || fail "macros"

python3 -c '
import json, sys
r = json.load(open(sys.argv[1]))
assert set(r["parts"]) == {"rank", "calibrate", "times", "agree", "tune"}
for name, part in r["parts"].items():
    assert not part["failed"] and part["result"], (name, part)
goldens = r["parts"]["agree"]["result"]["goldens"]
assert goldens["differed"] == 0 and goldens["plans"] > 1000
assert r["commit"] == open(sys.argv[2]).read().strip()
' "$folder/results/results.json" "$pack/commit" || fail "results.json"
