#!/usr/bin/env bash
# What can be counted of the house's style: file and function lengths, opening comments, layout,
# nothing left to do. It first proves on a small bad tree that it can fail.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

readonly FILE_LIMIT=1000 FUNCTION_LIMIT=100
# The one function that may be longer: the executor's dispatch over the instruction table.
readonly DISPATCH='^fitness/vm/exec/vm_exec[a-z_0-9]*\.[ch]$'

# The files of the tree at hand that people wrote, one a line.
sources() {
  local folders=() folder
  for folder in base corpora kernels ir fitness bundle tuner tests cmake examples; do
    [[ ! -d $folder ]] || folders+=("$folder")
  done
  find "${folders[@]}" -type f \( -name '*.c' -o -name '*.h' -o -name '*.def' -o -name '*.cu' \
    -o -name '*.sh' -o -name '*.cmake' -o -name CMakeLists.txt \) | sort
}

long_files() {
  sources | while IFS= read -r file; do
    lines=$(wc -l <"$file")
    [[ $lines -le $FILE_LIMIT ]] || echo "$file: $lines lines; split it (at most $FILE_LIMIT)"
  done
}

missing_comments() {
  sources | grep '\.c$' | while IFS= read -r file; do
    [[ $(head -c 2 "$file") == '/*' ]] || echo "$file:1: say in a comment what the file is for"
  done
}

leftovers() {
  local words='TO''DO|FIX''ME|X''XX'
  sources | xargs -r grep -nE "(^|[^A-Za-z])($words)([^A-Za-z]|\$)" | sed 's/$/  <- finish it/' || true
}

# Needs Universal Ctags, which knows where a function ends; without it this says nothing.
long_functions() {
  ctags --version 2>/dev/null | grep -q Universal || return 0
  sources | grep '\.c$' | ctags -L - -f - --languages=C --kinds-C=f --fields=+ne --excmd=number 2>/dev/null |
    awk -F '\t' -v limit="$FUNCTION_LIMIT" -v dispatch="$DISPATCH" '{
      first = last = 0
      for (i = 3; i <= NF; i++) {
        if ($i ~ /^line:/) first = substr($i, 6)
        if ($i ~ /^end:/) last = substr($i, 5)
      }
      if (last - first + 1 > limit && $2 !~ dispatch)
        printf "%s:%d: %s has %d lines (at most %d)\n", $2, first, $1, last - first + 1, limit
    }'
}

check_tree() (
  cd "$1"
  long_files
  missing_comments
  leftovers
  long_functions
)

fail_broken() {
  echo "the check of style is broken: $1" >&2
  exit 1
}

prove_that_it_can_fail() {
  local tree got
  tree=$(mktemp -d)
  trap 'rm -rf "$tree"' RETURN
  mkdir -p "$tree/base" "$tree/fitness/vm/exec"
  printf '/* Fine. */\nint one(void) { return 1; }\n' >"$tree/base/good.c"
  [[ -z $(check_tree "$tree") ]] || fail_broken "it refuses a good file"
  printf 'int two(void) { return 2; } // TO''DO\n' >"$tree/base/bad.c"
  printf '/* x %s */\n' {1..1001} >"$tree/base/long.h"
  {
    printf '/* Long. */\nvoid three(void) {\n'
    printf '    use(%s);\n' {1..100}
    printf '}\n'
  } >"$tree/base/function.c"
  cp "$tree/base/function.c" "$tree/fitness/vm/exec/vm_exec_x.c"
  got=$(check_tree "$tree")
  grep -q '^base/bad.c:1: say' <<<"$got" || fail_broken "no opening comment passes"
  grep -q '^base/bad.c:1:.*finish it' <<<"$got" || fail_broken "work left over passes"
  grep -q '^base/long.h: 1001 lines' <<<"$got" || fail_broken "a long file passes"
  ! ctags --version 2>/dev/null | grep -q Universal ||
    grep -q '^base/function.c:2: three has 102 lines' <<<"$got" || fail_broken "a long function passes"
  ! grep -q '^fitness/vm/exec/vm_exec_x.c' <<<"$got" || fail_broken "the dispatch is refused"
}

prove_that_it_can_fail
problems=$(check_tree .)
if [[ -n $problems ]]; then
  printf '%s\n' "$problems" >&2
  exit 1
fi
if command -v clang-format-19 >/dev/null; then
  bash "$here/lint.sh" format
fi
