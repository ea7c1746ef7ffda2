#!/usr/bin/env bash
# For developers: tests/lint.sh format | tidy | all [BUILD]. Layout by clang-format-19, and
# clang-tidy-19 with the compile commands of BUILD (build/ unless told). Packages: clang-format-19,
# clang-tidy-19.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly FOLDERS=(base corpora kernels ir fitness bundle tuner tests)

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

# Only what the build compiles: a source outside it has no flags to be read with.
lint_tidy() {
  local build=$1
  [[ -r $build/compile_commands.json ]] || {
    echo "lint: there is no $build/compile_commands.json; run ./bootstrap build first" >&2
    exit 2
  }
  sed -n 's/^ *"file": "\(.*\)",\{0,1\}$/\1/p' "$build/compile_commands.json" | sort -u |
    xargs -r -P "$(nproc)" -n 1 clang-tidy-19 --quiet -p "$build"
}

case ${1:-} in
format) lint_format ;;
tidy) lint_tidy "${2:-build}" ;;
all)
  lint_format
  lint_tidy "${2:-build}"
  ;;
*)
  sed -n '2,4s/^# //p' "${BASH_SOURCE[0]}" >&2
  exit 2
  ;;
esac
