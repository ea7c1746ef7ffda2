#!/usr/bin/env bash
# clang-tidy over all sources that the build compiles (tests/lint.sh tidy, .clang-tidy). It first
# proves on a small bad tree that it can fail.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly build=$1

fail_broken() {
  echo "the check by clang-tidy is broken: $1" >&2
  exit 1
}

# A build folder that compiles base/X.c of the tree.
write_commands() {
  local tree=$1 name=$2
  cat >"$tree/compile_commands.json" <<JSON
[
{
  "directory": "$tree",
  "command": "/usr/bin/clang-19 -DTEXT=\\\\\\"x\\\\\\" -I$tree -O2 -DNDEBUG -o $name.o -c $tree/base/$name.c",
  "file": "$tree/base/$name.c"
}
]
JSON
}

# What lint.sh says of base/X.c; empty: it is clean.
verdict() {
  write_commands "$1" "$2"
  bash "$here/lint.sh" tidy "$1" 2>&1 && return 0
  echo "refused"
}

prove_that_it_can_fail() {
  local tree got
  tree=$(mktemp -d)
  trap 'rm -rf "$tree"' RETURN
  mkdir "$tree/base"
  cp "$here/../.clang-tidy" "$tree"
  printf '#include "base/more.h"\nconst char *good(void) { return TEXT; }\n' >"$tree/base/good.c"
  touch "$tree/base/more.h"
  printf 'int null(int x) { int *p = 0; return x ? *p : 0; }\n' >"$tree/base/null.c"
  printf 'inline int nested(int x) { return x ? 1 : x + 1 ? 2 : 3; }\n' >"$tree/base/header.h"
  printf '#include "base/header.h"\nint user(void) { return nested(1); }\n' >"$tree/base/header.c"
  printf '#include <assert.h>\nint held(int *p) { assert(p != 0); if (p) return 1; return *p; }\n' \
    >"$tree/base/asserted.c"
  for turn in 1 2; do
    got=$(verdict "$tree" good)
    [[ -z $got ]] || fail_broken "it refuses a good file: $got"
    grep -q 'null.c:1:.*NullDereference' <<<"$(verdict "$tree" null)" ||
      fail_broken "a null pointer passes (turn $turn)"
  done
  grep -q 'header.h:1:.*nested-conditional' <<<"$(verdict "$tree" header)" ||
    fail_broken "a bad header passes"
  [[ -z $(verdict "$tree" asserted) ]] || fail_broken "it does not see asserts"
  cp "$tree/base/header.h" "$tree/base/more.h"
  grep -q refused <<<"$(verdict "$tree" good)" || fail_broken "a changed header is not read again"
  printf '#define TEXT 0\nint null(void) { int *p = TEXT; return *p; }\n' >"$tree/base/good.c"
  grep -q refused <<<"$(verdict "$tree" good)" || fail_broken "a changed file is not read again"
}

prove_that_it_can_fail
bash "$here/lint.sh" tidy "$build"
