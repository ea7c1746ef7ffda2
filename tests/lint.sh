#!/usr/bin/env bash
# tests/lint.sh format | tidy | all [BUILD]. Layout by clang-format-19; clang-tidy-19 over all sources
# that BUILD (build/ unless told) compiles, EVOKE_LINT_JOBS (2 unless told) at once. BUILD/tidy
# remembers clean sources until their preprocessed text, their flags or .clang-tidy change.
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

# The largest sources first, so that no processor waits at the end.
lint_tidy() {
  local build=$1
  [[ -r $build/compile_commands.json ]] ||
    fail 2 "there is no $build/compile_commands.json; run ./bootstrap build first"
  command -v clang-tidy-19 >/dev/null ||
    fail 1 "there is no clang-tidy-19; install the package of that name"
  mkdir -p "$build/tidy"
  build=$(cd "$build" && pwd)
  first_commands "$build/compile_commands.json" >"$build/tidy/compile_commands.json"
  sed -n 's/^ *"file": "\(.*\)"$/\1/p' "$build/tidy/compile_commands.json" |
    xargs -r ls -S | xargs -r -P "${EVOKE_LINT_JOBS:-2}" -n "$BATCH" bash tests/lint.sh files "$build"
}

# The flags of the first command that compiles a source, one a line. CMake writes the members of a
# command one a line, "command" before "file".
flags_of() {
  local build=$1 file=$2 command words
  command=$(awk -v file="\"file\": \"$file\"" '
    /^ *"command": / { command = $0 }
    index($0, file) { print command; exit }' "$build/tidy/compile_commands.json" |
    sed 's/^ *"command": "//; s/",$//; s/\\\(["\\]\)/\1/g')
  eval "words=($command)"
  set -- "${words[@]}"
  while [[ $1 != -* ]]; do shift; done # the compiler, and what stands before it
  while [[ $# -gt 0 ]]; do
    case $1 in
    -o) shift ;;
    -c | "$file") ;;
    *) printf '%s\n' "$1" ;;
    esac
    shift
  done
}

# The hash of all that the verdict on a source depends on.
hash_of() {
  local build=$1 file=$2 flags hash
  mapfile -t flags < <(flags_of "$build" "$file")
  hash=$({
    cat .clang-tidy
    [[ $file != "$PWD"/tests/* ]] || cat tests/.clang-tidy
    printf '%s\n' "$file" "${flags[@]}"
    clang-19 "${flags[@]}" -E -C -dD "$file"
  } 2>&1 | sha256sum)
  printf '%s\n' "${hash%% *}"
}

# One clang-tidy over those of the sources that were not clean with the same text, flags and checks: a
# third of its time on a source is its own start.
lint_files() {
  local build=$1 file mark files=() marks=() output
  shift
  for file; do
    mark=$build/tidy/$(hash_of "$build" "$file")
    [[ ! -e $mark ]] || continue
    files+=("$file")
    marks+=("$mark")
  done
  [[ ${#files[@]} -gt 0 ]] || return 0
  output=$(clang-tidy-19 --quiet -p "$build/tidy" "${files[@]}" 2>&1) || {
    printf '%s\n' "$output" >&2
    return 1
  }
  touch "${marks[@]}"
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
