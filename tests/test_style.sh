#!/usr/bin/env bash
# What can be counted of the house's style: file and function lengths, opening comments, layout,
# nothing left to do. It first proves on a small bad tree that it can fail.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

readonly FILE_LIMIT=800 FUNCTION_LIMIT=100 FOLDER_LIMIT=40
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

# One process looks at all files: a process a file takes half a minute.
long_files() {
  sources | xargs -r awk -v limit="$FILE_LIMIT" '
    function report() { if (lines > limit) printf "%s: %d lines; split it (at most %d)\n", name, lines, limit }
    FNR == 1 { report(); name = FILENAME }
    { lines = FNR }
    END { report() }'
}

# Sources, headers and tables of one folder; goldens and other data do not count.
full_folders() {
  sources | grep -E '\.(c|h|def)$' | sed 's|/[^/]*$||' | sort | uniq -c |
    while read -r count folder; do
      [[ $count -le $FOLDER_LIMIT ]] || echo "$folder: $count files; split it (at most $FOLDER_LIMIT)"
    done
}

# An empty file has no first line and so no comment.
missing_comments() {
  comm -23 <(sources | grep '\.c$' | sort) \
    <(sources | grep '\.c$' | xargs -r awk 'FNR == 1 { if (/^\/\*/) print FILENAME; nextfile }' | sort) |
    sed 's/$/:1: say in a comment what the file is for/'
}

leftovers() {
  local words='TO''DO|FIX''ME|X''XX'
  sources | xargs -r grep -nE "(^|[^A-Za-z])($words)([^A-Za-z]|\$)" | sed 's/$/  <- finish it/' || true
}

# What someone looked at while he sought a fault: LLVM's dumps, and files of a fixed name.
dumps() {
  sources | grep -v '^tests/' | grep '\.[ch]$' |
    xargs -r grep -nE 'LLVMDump(Module|Value|Type)|LLVMPrintModuleToFile|"/tmp/' | grep -v 'XXXXXX"' |
    sed 's/$/  <- take it out/' || true
}

# Universal Ctags knows where a function ends; headers hold functions too.
long_functions() {
  sources | grep '\.[ch]$' | ctags -L - -f - --languages=C --langmap=C:.c.h --kinds-C=f --fields=+ne --excmd=number 2>/dev/null |
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
  full_folders
  missing_comments
  leftovers
  dumps
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
  printf '/* x %s */\n' {1..801} >"$tree/base/long.h"
  printf '/* Dumps. */\nvoid see(LLVMModuleRef m) { LLVMPrintModuleToFile(m, "x.ll", NULL); }\n' >"$tree/base/dump.c"
  printf '/* A name. */\nchar name[] = "/tmp/name";\nchar fresh[] = "/tmp/XX''XXXX";\n' >"$tree/base/name.c"
  mkdir -p "$tree/ir/full"
  touch "$tree"/ir/full/{1..41}.h "$tree/base/empty.c"
  {
    printf '/* Long. */\nvoid three(void) {\n'
    printf '    use(%s);\n' {1..100}
    printf '}\n'
  } >"$tree/base/function.c"
  cp "$tree/base/function.c" "$tree/base/inline.h"
  cp "$tree/base/function.c" "$tree/fitness/vm/exec/vm_exec_x.c"
  got=$(check_tree "$tree")
  grep -q '^base/bad.c:1: say' <<<"$got" || fail_broken "no opening comment passes"
  grep -q '^base/empty.c:1: say' <<<"$got" || fail_broken "an empty source passes"
  grep -q '^base/bad.c:1:.*finish it' <<<"$got" || fail_broken "work left over passes"
  grep -q '^base/dump.c:2:.*take it out' <<<"$got" || fail_broken "a dump passes"
  grep -q '^base/name.c:2:.*take it out' <<<"$got" || fail_broken "a fixed name in /tmp passes"
  ! grep -q '^base/name.c:3' <<<"$got" || fail_broken "the name of a new file is refused"
  grep -q '^base/long.h: 801 lines' <<<"$got" || fail_broken "a long file passes"
  grep -q '^ir/full: 41 files' <<<"$got" || fail_broken "a full folder passes"
  grep -q '^base/function.c:2: three has 102 lines' <<<"$got" || fail_broken "a long function passes"
  grep -q '^base/inline.h:2: three has 102 lines' <<<"$got" || fail_broken "a long function of a header passes"
  ! grep -q '^fitness/vm/exec/vm_exec_x.c' <<<"$got" || fail_broken "the dispatch is refused"
}

# A check whose tool is missing has to fail, or nobody would notice.
need_tools() {
  ctags --version 2>/dev/null | grep -q Universal || {
    echo "there is no Universal Ctags; install the package universal-ctags" >&2
    exit 1
  }
  command -v clang-format-19 >/dev/null || {
    echo "there is no clang-format-19; install the package of that name" >&2
    exit 1
  }
}

need_tools
prove_that_it_can_fail
problems=$(check_tree .)
if [[ -n $problems ]]; then
  printf '%s\n' "$problems" >&2
  exit 1
fi
bash "$here/lint.sh" format
