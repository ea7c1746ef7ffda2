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
python3 -c '
import json, sys
r = json.load(open(sys.argv[1]))
assert set(r["parts"]) == {"calibrate", "times", "rank"} # what is of the same commit and device stays
assert len(r["parts"]["rank"]["result"]["samples"]) == 12
assert r["parts"]["rank"]["command"].endswith("--parts rank") and r["parts"]["times"]["command"].endswith("times")
assert len(r["commit"]) >= 7 and r["machine"]["evoke"].startswith("evoke ") and r["date"].endswith("Z")
' "$folder/out/results.json" || fail "results.json of two runs"

# A part that fails is said, the next one runs, and the whole fails.
mkdir "$folder/bin"
ln -s "$build/evoke" "$folder/bin/evoke" # and no goldens
EVOKE_BIN=$folder/bin run 1 --parts agree,calibrate
has '^agree +FAILED .*24 of 24 cases of kernels alike, 24 pass; goldens: exit code 127' \
  "$folder/table"
python3 -c '
import json, sys
r = json.load(open(sys.argv[1]))["parts"]["agree"]
assert r["why"] == "goldens: exit code 127", r["why"] # the checks themselves pass
assert sum(row["kernel"] == "scale_in_steps" for row in r["result"]["kernels"]) == 12
' "$folder/out/results.json" || fail "results.json of a part that failed"
has '^calibrate +done' "$folder/table"

run 2 --parts agree,dance
run 2 --seconds soon
run 3 --device cuda:7
has 'there are cuda:0, vm:' "$folder/errors"
LD_LIBRARY_PATH='' run 3
has 'no CUDA driver on this machine .libcuda' "$folder/errors"

# A command that does not heed its time is killed: its rows count, and the next part has its time.
cat >"$folder/bin/hangs" <<'SCRIPT'
#!/usr/bin/env bash
if [[ $1 == bench ]]; then
  while [[ $1 != --rows ]]; do shift; done
  for ns in 100 110 120; do
    echo '{"kernel": "scale", "start": "hand", "modelled_ns": '$ns', "measured_ns": 100}'
  done >"$2"
  trap '' TERM
  while true; do sleep 0.2; done
fi
exec "$(dirname "$0")/evoke-itself" "$@"
SCRIPT
chmod +x "$folder/bin/hangs"
mv "$folder/bin/evoke" "$folder/bin/evoke-itself"
mv "$folder/bin/hangs" "$folder/bin/evoke"
EVOKE_BIN=$folder/bin run 1 --parts rank,calibrate --seconds 48
has '^rank +FAILED .*cut off after 3 variants, mean error 10 %; rank: stopped after' "$folder/table"
has '^calibrate +done' "$folder/table"

# So it is when the script itself is told to stop; what is left is not begun.
rm -rf "$folder/out"
EVOKE_BIN=$folder/bin bash tests/gpu/run.sh --small --out "$folder/out" --parts rank,calibrate --seconds 16 \
  >"$folder/table" 2>"$folder/errors" &
while [[ ! -s $folder/out/rank.rows ]]; do sleep 0.05; done
kill -TERM $!
got=0
wait $! || got=$?
[[ $got == 1 ]] || fail "exit code $got after a signal"
has '^rank +FAILED .*cut off after 3 variants' "$folder/table"
[[ ! -e $folder/out/calibrate.status ]] || fail "a part was begun after the signal"

# With little time every part that was begun has a result, or says that it had no time.
got=0
timeout 120 bash tests/gpu/run.sh --small --out "$folder/little" --seconds 6 >"$folder/table" \
  2>"$folder/errors" || got=$?
[[ $got -le 1 ]] || fail "exit code $got with 6 s"
python3 -c '
import json, sys
parts = json.load(open(sys.argv[1]))["parts"]
assert set(parts) == {"rank", "calibrate", "times", "agree", "tune"}, parts.keys()
for name, part in parts.items():
    assert part["failed"] == bool(part["why"]), (name, part)
    assert part["result"] is not None or "no time left" in part["why"] or "stopped after" in part["why"], (name, part)
' "$folder/little/results.json" || fail "results.json of a short run"

# Checks of several tasks at a time are put together: rows in the order of the tasks, the worst code.
cat >"$folder/bin/checks" <<'SCRIPT'
#!/usr/bin/env bash
while [[ $1 != --rows ]]; do
  [[ $1 != check ]] || task=$2
  shift
done
echo '{"kernel": "'"$task"'"}' >"$2"
case $task in
  slow)
    trap 'echo "{\"verdict\": \"stopped\", \"stopped\": true, \"rows\": []}"; exit 3' TERM
    echo "$$" >"$FOLDER/slow.pid"
    while true; do sleep 0.05; done
    ;;
  late) sleep 0.3 ;;
  lost) exit 3 ;;
esac
echo '{"verdict": "pass", "kernels": [], "rows": [{"kernel": "'"$task"'"}], "replays": [], "stresses": []}'
[[ $task != wrong ]]
SCRIPT
chmod +x "$folder/bin/checks"
# checks STATUS ROWS TASK...: check.py ends with STATUS and has the kernels ROWS, in its object and in its file.
checks() {
  local wanted=$1 rows=$2 got=0
  shift 2
  FOLDER=$folder python3 tests/gpu/check.py "$folder/bin/checks" vm:h200 "$folder/many.rows" "$@" >"$folder/many" || got=$?
  [[ $got == "$wanted" ]] || fail "check.py: exit code $got, not $wanted: $*"
  [[ $(python3 -c 'import json, sys; print(*[r["kernel"] for r in json.load(open(sys.argv[1]))["rows"]])' "$folder/many") == \
    "$rows" ]] || fail "check.py: $(cat "$folder/many")"
  [[ $(wc -l <"$folder/many.rows") == "$#" ]] || fail "check.py: $(cat "$folder/many.rows")"
}
checks 0 'late one two' late one two
checks 1 'late wrong lost' late wrong lost
checks 3 'late lost' late lost
has '"cut_off": true' "$folder/many"
rm -f "$folder/slow.pid"
FOLDER=$folder python3 tests/gpu/check.py "$folder/bin/checks" vm:h200 "$folder/many.rows" one slow >"$folder/many" &
child=$!
while [[ ! -s $folder/slow.pid ]]; do sleep 0.05; done
kill -TERM "$child"
got=0
wait "$child" || got=$?
[[ $got == 3 ]] || fail "check.py: exit code $got after a signal"
has '"verdict": "stopped", "stopped": true' "$folder/many"
if kill -0 "$(cat "$folder/slow.pid")" 2>/dev/null; then fail "check.py left a process"; fi

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
