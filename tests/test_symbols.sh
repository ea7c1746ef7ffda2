#!/usr/bin/env bash
# Symbols: no two objects of the static libraries define one function. A linker takes the first of
# two without a word, so one edit would do the work of another.
set -euo pipefail
build=$1
# duplicates LIBRARY...: the functions and variables that two objects define.
duplicates() { nm --defined-only --extern-only "$@" 2>/dev/null | awk '$2 ~ /^[TDBR]$/ { print $3 }' | sort | uniq -d; }

# The check can fail.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
echo 'int same(void) { return 1; }' >"$scratch/a.c"
cp "$scratch/a.c" "$scratch/b.c"
(cd "$scratch" && clang-19 -c a.c b.c && ar rc libtwo.a a.o b.o)
[[ $(duplicates "$scratch/libtwo.a") == same ]] || { echo "the check finds no duplicate"; exit 1; }

mapfile -t libraries < <(find "$build" -name 'libevoke_*.a' -not -path '*/portable/*' -not -path '*/lib/*')
((${#libraries[@]} > 20)) || { echo "there are only ${#libraries[@]} libraries in $build"; exit 1; }
found=$(duplicates "${libraries[@]}")
[[ -z $found ]] || { echo "two objects define: $found"; exit 1; }
