#!/usr/bin/env bash
# What a signal leaves of the commands that tests/gpu/run.sh runs, here on the stand-in: the object
# with "stopped": true, and each row that was known in the file of --rows.
set -euo pipefail
build=$1
readonly SKIPPED=77
command -v python3 >/dev/null || exit "$SKIPPED"

folder=$(mktemp -d)
child=''
trap '[[ -z $child ]] || kill -KILL "$child" 2>/dev/null; rm -rf "$folder"' EXIT
export LD_LIBRARY_PATH=$build/standin EVOKE_STANDIN=h200 EVOKE_STANDIN_QUIET=1
evoke=$build/evoke
task=tests/gpu/small/task.json

fail() {
  printf 'test_gpu_stop: %s\n' "$*" >&2
  cat "$folder/out" "$folder/errors" >&2
  exit 1
}

# stopped CODE FILE COMMAND...: the command gets two signals at once, as timeout(1) sends them, as soon
# as there is something in FILE, and ends with CODE; its stdout is in $folder/out.
stopped() {
  local wanted=$1 file=$2 got=0
  shift 2
  rm -f "$folder/rows"
  "$@" >"$folder/out" 2>"$folder/errors" &
  child=$!
  while [[ ! -s $file ]]; do
    kill -0 "$child" 2>/dev/null || fail "it ended by itself: $*"
    sleep 0.02
  done
  kill -TERM "$child"
  kill -TERM "$child" 2>/dev/null || true
  wait "$child" || got=$?
  child=''
  [[ $got == "$wanted" ]] || fail "exit code $got, not $wanted: $*"
}

# holds WORDS...: claims in Python about `whole`, the object, and `rows`, the file's.
holds() {
  python3 - "$folder/out" "$folder/rows" "$@" <<'PYTHON' || fail "$*"
import json, os, sys

whole = json.loads(open(sys.argv[1]).read().splitlines()[-1])
rows = [json.loads(line) for line in open(sys.argv[2])] if os.path.exists(sys.argv[2]) else []
for claim in sys.argv[3:]:
    if not eval(claim):
        sys.exit("not so: %s\n%s" % (claim, json.dumps(whole)))
PYTHON
}

often=()
for _ in {1..200}; do
  often+=("$task")
done
stopped 3 "$folder/rows" "$evoke" check "${often[@]}" --device cuda:0 --rows "$folder/rows" --json
holds 'whole["stopped"] is True and whole["verdict"] == "stopped"' 'rows and rows == whole["rows"]' \
  'len(rows) < 200 * 12' 'rows[0]["kernel"] == "scale" and rows[0]["verdict"] == "pass"'

stopped 3 "$folder/rows" "$evoke" calibrate --device cuda:0 --out "$folder/gpu.json" \
  --rows "$folder/rows" --json
holds 'whole["stopped"] is True' 'rows and rows == whole["rows"]' 'rows[0]["probe"] == "CLOCK" and len(rows) < 30'
"$evoke" check "$task" --device "vm:$folder/gpu.json" --split adversarial >/dev/null ||
  fail "the description of a stopped calibration"

stopped 3 "$folder/rows" "$evoke" bench rank --device cuda:0 --variants 100000 --only "$task" \
  --rows "$folder/rows" --json
holds 'whole["stopped"] is True' 'rows and len(rows) == whole["variants"]' \
  'sum(r["variants"] for r in whole["rows"]) == len(rows)' \
  'all(r["modelled_ns"] > 0 and r["measured_ns"] > 0 for r in rows)'

stopped 3 "$folder/rows" "$build/tests/goldens" cuda:0 --rows "$folder/rows"
holds 'whole["stopped"] is True and whole["unfinished"] > 0' 'rows and len(rows) == whole["plans"]' \
  'rows[0]["outcome"] == "agreed"'

# The records are there when the workers open.
stopped 0 "$folder/records" "$evoke" tune "$task" --device cuda:0 --evaluations 100000 \
  --records "$folder/records" --json
holds 'whole["stopped"] is True'

# Without --json: words, and no claim that all passed.
stopped 3 "$folder/rows" "$evoke" check "${often[@]}" --device cuda:0 --rows "$folder/rows"
grep -q '^verdict: stopped$' "$folder/out" || fail "no verdict"
grep -q 'stopped by a signal' "$folder/errors" || fail "no words"
