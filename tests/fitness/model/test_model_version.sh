#!/usr/bin/env bash
# The fingerprint of the timing model follows its sources: another one after a change of any file, the
# same one after the change is taken back and in whatever order the files are named.
set -euo pipefail
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() {
  echo "$1"
  exit 1
}

# version_of FILES
version_of() {
  cmake -DSOURCE="$scratch" -DFILES="$1" -DOUT="$scratch/version.c" -P cmake/model_version.cmake
  grep -oE '"[0-9a-f]{16}"' "$scratch/version.c"
}

mkdir "$scratch/gpus"
printf 'a' >"$scratch/model.c"
printf '{}' >"$scratch/gpus/h200.json"
before=$(version_of model.c,gpus/h200.json)
[[ $(version_of gpus/h200.json,model.c) == "$before" ]] || fail "the order of the files counts"
printf '{"sms": 1}' >"$scratch/gpus/h200.json"
[[ $(version_of model.c,gpus/h200.json) != "$before" ]] || fail "a changed GPU leaves the fingerprint"
printf '{}' >"$scratch/gpus/h200.json"
printf 'b' >"$scratch/model.c"
[[ $(version_of model.c,gpus/h200.json) != "$before" ]] || fail "a changed source leaves the fingerprint"
printf 'a' >"$scratch/model.c"
[[ $(version_of model.c,gpus/h200.json) == "$before" ]] || fail "the fingerprint does not come back"

# This build's, which evoke tells, is that of the sources as they are.
told=$("$1/evoke" --version --json | grep -oE '"model": ?"[0-9a-f]{16}"' | grep -oE '[0-9a-f]{16}')
grep -q "\"$told\"" "$1/fitness/model/version.c" || fail "evoke tells another fingerprint than was built in: $told"
