#!/usr/bin/env bash
# tests/gpu/vendor.py with a torch that has shapes and a clock, but no GPU (tests/gpu/fake): all
# rows, the operands' shapes, what is timed, a row that fails, a run that is stopped.
set -euo pipefail
build=$1
readonly SKIPPED=77
command -v python3 >/dev/null || exit "$SKIPPED"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export PYTHONDONTWRITEBYTECODE=1

# vendor STATUS WORDS-OF-THE-TORCH: vendor.py ends with STATUS; its object in $folder/all, its rows in
# $folder/rows.
vendor() {
  local got=0
  FAKE_TORCH=$2 PYTHONPATH=tests/gpu/fake python3 tests/gpu/vendor.py --evoke "$build/evoke" \
    --rows "$folder/rows" >"$folder/all" || got=$?
  [[ $got == "$1" ]] || {
    cat "$folder/all" >&2
    echo "test_gpu_vendor: exit code $got, not $1, with '$2'" >&2
    exit 1
  }
}

# holds WORDS...: a claim in Python about `whole` (the object) and `rows` (of the file).
holds() {
  python3 - "$folder/all" "$folder/rows" "$@" <<'PYTHON'
import json, sys

whole = json.load(open(sys.argv[1]))
rows = [json.loads(line) for line in open(sys.argv[2])]
for claim in sys.argv[3:]:
    if not eval(claim):
        sys.exit("test_gpu_vendor: not so: %s\n%s" % (claim, json.dumps(whole)))
PYTHON
}

# What the tasks' own rules make of a case's shape.
cat >"$folder/operands.py" <<'PYTHON'
import json, subprocess, sys

rules = {
    "fft_conv2d": lambda s: {"X": [s["images"], s["channels"], s["height"], s["width"]],
                             "F": [s["outputs"], s["channels"], 5, 5]},
    "sd_lstm_fp": lambda s: {"X": [s["B"], s["k"]], "W": [4 * s["H"], s["k"]],
                             "G": [s["B"], 4 * s["H"]], "C": [s["B"], s["H"]]},
    "bp_data_masked": lambda s: {"dY": [s["images"] * s["side"] ** 2, s["cout"] * s["taps"]],
                                 "W": [s["cout"] * s["taps"], s["cin"]],
                                 "X": [s["images"] * s["side"] ** 2, s["cin"]]},
    "ar_adam": lambda s: {"gradient": [s["ranks"], s["n"]], "parameter": [s["ranks"], s["n"]]},
}
listed = json.loads(subprocess.check_output([sys.argv[1], "list", "--json"]))
wanted = {(t["kernel"], c["case"]): rules[t["kernel"]](c["shape"])
          for t in listed["tasks"] if t["kernel"] in rules for c in t["cases"] if c["use"] == "time"}
rows = json.load(open(sys.argv[2]))["rows"]
found = {(r["kernel"], r["case"]): r["operands"] for r in rows}
assert len(wanted) == 17 and found == wanted, (len(wanted), len(found), [k for k in wanted if found.get(k) != wanted[k]])
PYTHON

vendor 0 ''
python3 "$folder/operands.py" "$build/evoke" "$folder/all"
holds 'len(whole["rows"]) == 17 and rows == whole["rows"]' 'whole["why"] == "" and "stopped" not in whole' \
  'all(r["how"] == "graph" and r["ns"] > 0 for r in rows)' 'whole["torch"] == "0.fake"'
cp "$folder/rows" "$folder/by-graph"

# What can't be captured is queued behind a kernel that waits: the same time on the GPU. Without either the
# host's time is in it, and the row says so.
vendor 0 no-graph
holds 'all(r["how"] == "sleep" for r in rows)' \
  "[r['ns'] for r in rows] == [json.loads(l)['ns'] for l in open('$folder/by-graph')]"
vendor 0 'no-graph no-sleep'
holds 'all(r["how"] == "eager" for r in rows)' \
  "any(r['ns'] > json.loads(l)['ns'] for r, l in zip(rows, open('$folder/by-graph')))"

# A row that fails says why; the others are there.
vendor 1 no-conv2d
holds 'len(rows) == 17 and sum("ns" in r for r in rows) == 13' \
  'all("no convolution" in r["why"] for r in rows if "ns" not in r)' '"no convolution" in whole["why"]'

vendor 3 stop-after-100
holds '0 < len(rows) < 17 and rows == whole["rows"]' 'whole["stopped"] is True'

vendor 0 no-gpu
holds 'whole["why"] == "PyTorch finds no GPU" and rows == []'
