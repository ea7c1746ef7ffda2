#!/usr/bin/env bash
# bootstrap's words and exit codes where it does nothing: help, wrong usage, another system.
set -euo pipefail

# expect EXIT-CODE LINES WORDS ARGUMENTS...: bootstrap answers with that code and these words, in so
# many lines (0: any number).
expect() {
  local code=$1 lines=$2 words=$3 got output count
  shift 3
  got=0
  output=$(./bootstrap "$@" 2>&1 </dev/null) || got=$?
  count=$(wc -l <<<"$output")
  if [[ $got != "$code" || $output != *"$words"* ]] || [[ $lines != 0 && $count != "$lines" ]]; then
    printf 'bootstrap %s: exit %s, %s lines:\n%s\n' "$*" "$got" "$count" "$output" >&2
    exit 1
  fi
}

expect 0 0 'usage: ./bootstrap tune | test | build | --help' --help
expect 2 0 'usage:'
expect 2 0 'usage:' build test
expect 2 1 "there is no 'tests'; one of tune, test, build, --help" tests

other=$(mktemp)
trap 'rm -f "$other"' EXIT
export EVOKE_OS_RELEASE=$other
for system in $'ID=ubuntu\nVERSION_ID="24.04"' $'ID=debian\nVERSION_ID="11"' ''; do
  printf '%s\n' "$system" >"$other"
  for command in build test tune; do
    expect 3 1 'bootstrap: this needs Debian 12 with the packages: clang-19 ' "$command"
  done
done
EVOKE_OS_RELEASE=/nonexistent expect 3 1 'this needs Debian 12' build
