#!/usr/bin/env bash
# tests/lint.sh format | tidy | all [BUILD]. Layout by clang-format-19; clang-tidy-19 over all sources
# that BUILD (build/ unless told) compiles, EVOKE_LINT_JOBS (2 unless told) at once. BUILD/tidy
# remembers clean sources until a file that they are made of, their flags or .clang-tidy change.
# Packages: clang-format-19, clang-tidy-19.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly BATCH=10 # sources that one clang-tidy reads
readonly FOLDERS=(base corpora kernels ir fitness bundle tuner tests)

fail() {
  echo "lint: $2" >&2
  exit "$1"
}

# Names each file that clang-format would change.
lint_format() {
  local output
  output=$(find "${FOLDERS[@]}" -type f \( -name '*.c' -o -name '*.h' \) -print0 | sort -z |
    xargs -0 -r clang-format-19 --dry-run -Werror 2>&1) && return 0
  if grep -q ': error: ' <<<"$output"; then
    sed -n 's/:[0-9]*:[0-9]*: error: .*/: its layout differs; run clang-format-19 -i on it/p' \
      <<<"$output" | uniq >&2
  else
    printf '%s\n' "$output" >&2
  fi
  return 1
}

# The first command of each source alone: clang-tidy would read a source once for each of its commands.
first_commands() {
  awk '
    BEGIN { print "[" }
    /^ *"directory": / { directory = $0 }
    /^ *"command": / { command = $0 }
    /^ *"file": / {
      sub(/,$/, "")
      if (seen[$0]++) next
      printf "%s{\n%s\n%s\n%s\n}", count++ ? ",\n" : "", directory, command, $0
    }
    END { print "\n]" }' "$1"
}

# "OBJECT: ..." and a line for each file that it is made of. Ninja knows them; elsewhere the compiler is
# asked. One process for all sources: clang-19's start alone takes 0.1 s.
files_of_objects() {
  local build=$1 command
  if [[ -r $build/build.ninja ]]; then
    ninja -C "$build" -t deps
    return
  fi
  sed -n '/^ *"command": "/ { s///; s/",$//; s/\\\(["\\]\)/\1/g; p }' \
    "$build/tidy/compile_commands.json" | while IFS= read -r command; do
    printf '%s: \n' "$(sed 's/.* -o \([^ ]*\) -c .*/\1/' <<<"$command")"
    (eval "${command/ -o * -c / -M }") | tr -d '\\' | tr -s ' \n' '\n' | sed '1d; /./s/^/    /'
  done
}

# "HASH FILE" for each source: the hash of its command, its checks and all files that it is made of. The
# time stands for what no one knows.
hashes() {
  local build=$1 work
  work=$(mktemp -d)
  files_of_objects "$build" >"$work/deps"
  (cd "$build" && sed -n 's/^    //p' "$work/deps" | sort -u | xargs -r -d '\n' sha256sum) >"$work/sums" || true
  mkdir "$work/texts"
  awk -v texts="$work/texts" -v now="$(date +%s%N)" \
    -v checks="$(cat .clang-tidy tests/.clang-tidy 2>/dev/null | sha256sum)" '
    FILENAME ~ /sums$/ { sums[substr($0, 67)] = substr($0, 1, 64); next }
    FILENAME ~ /deps$/ && /^    / { made[object] = made[object] $1 " " sums[$1] "\n"; next }
    FILENAME ~ /deps$/ { object = $1; sub(/:$/, "", object); next }
    /^ *"command": / { command = $0; object = $0; sub(/.* -o /, "", object); sub(/ -c .*/, "", object) }
    /^ *"file": / {
      text = sprintf("%s/%06d", texts, ++count)
      print $0 "\n" command "\n" checks "\n" (object in made ? made[object] : now) >text
      close(text)
    }' "$work/sums" "$work/deps" "$build/tidy/compile_commands.json"
  paste -d ' ' <(find "$work/texts" -type f | sort | xargs -r sha256sum | cut -c 1-64) \
    <(sed -n 's/^ *"file": "\(.*\)"$/\1/p' "$build/tidy/compile_commands.json")
  rm -r "$work"
}

# The largest sources first, so that no processor waits at the end: the executor's few lines include
# the most. Its copies for other instruction sets are the same text with another name.
largest_first() {
  sed '\:/vm_exec_avx[^/]*$:d' | xargs -r ls -S | awk '
    /\/vm_exec_/ { print; next }
    { rest[++count] = $0 }
    END { for (i = 1; i <= count; i++) print rest[i] }'
}

lint_tidy() {
  local build=$1 hash file
  [[ -r $build/compile_commands.json ]] ||
    fail 2 "there is no $build/compile_commands.json; run ./bootstrap build first"
  command -v clang-tidy-19 >/dev/null ||
    fail 1 "there is no clang-tidy-19; install the package of that name"
  mkdir -p "$build/tidy"
  build=$(cd "$build" && pwd)
  first_commands "$build/compile_commands.json" >"$build/tidy/compile_commands.json"
  hashes "$build" >"$build/tidy/hashes"
  while read -r hash file; do
    [[ -e $build/tidy/$hash ]] || printf '%s\n' "$file"
  done <"$build/tidy/hashes" | largest_first |
    xargs -r -P "${EVOKE_LINT_JOBS:-2}" -n "$BATCH" bash tests/lint.sh files "$build"
}

# One clang-tidy over several sources, of whose time on a source a third is its own start.
lint_files() {
  local build=$1 output
  shift
  output=$(clang-tidy-19 --quiet -p "$build/tidy" "$@" 2>&1) || {
    printf '%s\n' "$output" >&2
    return 1
  }
  printf '%s\n' "$@" | awk -v folder="$build/tidy/" '
    NR == FNR { clean[$0]; next }
    substr($0, 66) in clean { print folder $1 }' - "$build/tidy/hashes" | xargs -r touch
}

case ${1:-} in
format) lint_format ;;
tidy) lint_tidy "${2:-build}" ;;
files) lint_files "${@:2}" ;; # lint_tidy's
all)
  lint_format
  lint_tidy "${2:-build}"
  ;;
*)
  sed -n '2,5s/^# //p' "${BASH_SOURCE[0]}" >&2
  exit 2
  ;;
esac
