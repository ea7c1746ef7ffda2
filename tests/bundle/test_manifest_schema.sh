#!/usr/bin/env bash
# The JSON Schema of manifest.json, by Debian's python3-jsonschema. Exit code 77: it is not here, which
# is a failure where EVOKE_TEST_ALL=1 (./bootstrap test).
set -euo pipefail
build=$1
python=
for candidate in python3 /usr/bin/python3; do
  "$candidate" -c 'import jsonschema; jsonschema.Draft202012Validator' 2>/dev/null || continue
  python=$candidate
  break
done
if [[ -z $python ]]; then
  echo "skipped: there is no python3-jsonschema"
  [[ ${EVOKE_TEST_ALL:-} == 1 ]] && exit 1
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# a bundle with machine code, whether an assembler is here or not
printf '#!/bin/sh\ncat >/dev/null\nprintf "\\177ELF of a test"\n' >"$work/ptxas"
chmod +x "$work/ptxas"
export EVOKE_PTXAS="$work/ptxas"
"$build/evoke" tune examples/rmsnorm/task.json --evaluations 40 --seed 1 --records "$work/records" --out "$work/bundle" \
  >"$work/log" 2>&1 || {
  cat "$work/log"
  exit 1
}
"$python" -W ignore tests/bundle/manifest_schema.py bundle/manifest.schema.json bundle/manifest.def \
  "$build/lib/libevoke-bundle.so" "$work/bundle"
