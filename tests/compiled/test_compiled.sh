#!/usr/bin/env bash
# The clang-19 of the tests (clang.c here) remembers what stays the same, and nothing else: a compiler that
# counts its runs stands behind it.
set -euo pipefail
build=$1
real=$(PATH=${PATH//"$build/tests/compiled:"/} command -v clang-19)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

fail() {
  echo "test_compiled: $1" >&2
  exit 1
}

mkdir "$folder/bin" "$folder/more"
cat >"$folder/bin/clang-19" <<SCRIPT
#!/bin/sh
echo run >>"$folder/runs"
exec "$real" "\$@"
SCRIPT
chmod +x "$folder/bin/clang-19"
export PATH=$build/tests/compiled:$folder/bin:/usr/bin:/bin EVOKE_TEST_COMPILED=$folder/kept
cd "$folder"

# expect RUNS COMMAND...: the compiler behind runs so often; its output is the compiler's own.
expect() {
  local runs=$1
  shift
  : >"$folder/runs"
  "$@" || fail "it fails: $*"
  [[ $(wc -l <"$folder/runs") == "$runs" ]] || fail "$(wc -l <"$folder/runs") runs, not $runs: $*"
}
like_the_compiler() {
  "$real" -c x.c -I more -o want.o
  cmp want.o got.o || fail "another object"
}

echo '#define ONE 1' >more/one.h
printf '#include "one.h"\nint x(void) { return ONE; }\n' >x.c
command=(clang-19 -c x.c -I more -o got.o)
expect 1 "${command[@]}"
like_the_compiler
rm got.o
expect 0 "${command[@]}"
like_the_compiler
expect 0 clang-19 -c x.c -I more -o - >out.o
cmp want.o out.o || fail "another object on stdout"
expect 1 clang-19 -c x.c -I more -O2 -o got.o
echo '#define ONE 2' >more/one.h
expect 1 "${command[@]}"
like_the_compiler
echo 'int y;' >>x.c
expect 1 "${command[@]}"
like_the_compiler
expect 1 clang-19 -x c -c -I more -o got.o - <x.c
expect 0 clang-19 -x c -c -I more -o got.o - <x.c
echo 'int z;' >>x.c
expect 1 clang-19 -x c -c -I more -o got.o - <x.c
expect 1 clang-19 -shared -fPIC x.c -I more -o one.so
expect 0 clang-19 -shared -fPIC x.c -I more -o two.so
cmp one.so two.so || fail "another library"
touch "$folder/bin/clang-19" # another compiler
expect 1 "${command[@]}"

# Words and failures come again each time.
echo '#warning so it is' >>x.c
for turn in 1 2; do
  expect 1 "${command[@]}" 2>words
  grep -q 'so it is' words || fail "a warning is lost (turn $turn)"
done
echo 'no c' >>x.c
for turn in 1 2; do
  status=0
  "${command[@]}" 2>words || status=$?
  [[ $status == 1 ]] || fail "status $status of a wrong source (turn $turn)"
  grep -q 'x.c:5' words || fail "an error is lost (turn $turn)"
done
# Before it in PATH may stand a script that calls it.
mkdir before
printf '#!/bin/sh\nexec "%s/tests/compiled/clang-19" "$@"\n' "$build" >before/clang-19
chmod +x before/clang-19
echo 'int v;' >v.c
PATH=$folder/before:$PATH
expect 1 timeout 20 clang-19 -c v.c -o v.o
expect 0 timeout 20 clang-19 -c v.c -o v.o
expect 1 clang-19 --version >words
grep -q 'clang version 19' words || fail "no version"
status=0
PATH=/nowhere "$build/tests/compiled/clang-19" --version 2>words || status=$?
[[ $status == 127 ]] || fail "status $status without a compiler"
