#!/usr/bin/env bash
# docs/kernels.md and results/kernel-floors.json are of the shipped tasks as they are. Exit code 77:
# there is no python3, which skips the test; with EVOKE_TEST_ALL=1 that is a failure.
set -euo pipefail
build=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() { echo "$*"; exit 1; }

if ! command -v python3 >/dev/null; then
  [[ ${EVOKE_TEST_ALL:-} != 1 ]] || fail "there is no python3"
  echo "skipped: there is no python3"
  exit 77
fi
python3 kernels/document.py "$build/evoke" --check || fail "see above"

# The check can fail: a page without its last line, and figures of another task.
mkdir "$scratch/docs" "$scratch/results"
cp -r kernels "$scratch/kernels"
sed '$d' docs/kernels.md >"$scratch/docs/kernels.md"
cp results/kernel-floors.json "$scratch/results"
! python3 "$scratch/kernels/document.py" "$build/evoke" --check 2>"$scratch/says" ||
  fail "a page that lacks a line passes"
grep -q 'docs/kernels.md is out of date' "$scratch/says" || fail "it says $(cat "$scratch/says")"
sed -i '0,/"task_sha256": "/s//&0/' "$scratch/results/kernel-floors.json"
! python3 "$scratch/kernels/document.py" "$build/evoke" --check 2>"$scratch/says" ||
  fail "figures of another task pass"
grep -q 'is not of these tasks as they are: ar_adam' "$scratch/says" || fail "it says $(cat "$scratch/says")"
