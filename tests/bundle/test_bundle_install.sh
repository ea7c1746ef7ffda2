#!/usr/bin/env bash
# The library that a scheduler links: built alone by gcc, installed, found by pkg-config and CMake, used
# by a C11 program on the stand-in for the driver; it exports its header's names alone, and needs
# neither LLVM nor SQLite nor a CUDA library.
set -euo pipefail
build=$1
source=$PWD
standin=$build/standin
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  printf '%s\n' "$*" >&2
  exit 1
}

compiler=$(command -v gcc || command -v cc)
cmake -S . -B "$work/build" -DCMAKE_C_COMPILER="$compiler" -DCMAKE_BUILD_TYPE=Release -DEVOKE_TESTS=OFF \
  -DEVOKE_FLOORS="base;bundle" -DCMAKE_C_FLAGS=-Werror -DCMAKE_INSTALL_LIBDIR=lib >"$work/log" 2>&1 ||
  fail "$(cat "$work/log")"
cmake --build "$work/build" -j2 >"$work/log" 2>&1 || fail "$(cat "$work/log")"
cmake --install "$work/build" --component bundle --prefix "$work/prefix" >"$work/log" 2>&1 ||
  fail "$(cat "$work/log")"

# what is exported, by both libraries, is what the header declares
grep -oE '\bevoke_[a-z0-9_]+\(' "$work/prefix/include/evoke/bundle.h" | tr -d '(' | sort -u >"$work/declared"
nm -D --defined-only "$work/prefix/lib/libevoke-bundle.so" | awk '{print $3}' | sort >"$work/shared"
nm -g --defined-only "$work/prefix/lib/libevoke-bundle.a" | awk 'NF == 3 {print $3}' | sort >"$work/static"
diff "$work/declared" "$work/shared" || fail "the shared library does not export the header's names"
diff "$work/declared" "$work/static" || fail "the static library does not define the header's names"

# what is needed: C, mathematics, JSON, hashes
for file in "$work/prefix/lib/libevoke-bundle.so" "$build/lib/libevoke-bundle.so"; do
  [[ -e $file ]] || continue
  needed=$(readelf -d "$file" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | grep -vE '^lib(c|m|dl|pthread|asan|ubsan)\.so' || true)
  [[ $(sort <<<"$needed") =~ ^libcrypto\.so\.[0-9.]+$'\n'libjansson\.so\.[0-9.]+$ ]] ||
    fail "$file needs: $needed"
done
readelf -d "$work/prefix/lib/libevoke-bundle.so" | grep -q 'SONAME.*\[libevoke-bundle\.so\.0\]' ||
  fail "the library has no SONAME"
[[ -s $work/prefix/share/evoke-bundle/manifest.schema.json ]] || fail "the schema of manifests is not installed"
[[ -s $work/prefix/share/man/man3/evoke-bundle.3 ]] || fail "there is no man page"
while read -r name; do
  grep -q "$name" "$work/prefix/share/man/man3/evoke-bundle.3" || fail "the man page lacks $name"
done <"$work/declared"

# a program that opens and resolves needs no CUDA library, neither when it is linked nor when it runs
export PKG_CONFIG_PATH=$work/prefix/lib/pkgconfig
read -ra flags < <(pkg-config --cflags --libs evoke-bundle)
read -ra all < <(pkg-config --static --cflags --libs evoke-bundle | sed "s/-levoke-bundle//")
strict=(-std=c11 -pedantic -Wall -Wextra -Werror)
bundle=$work/net.tar
"$build/evoke" tune bp_data_masked sd_lstm_fp --evaluations 4 --seed 1 --no-structure \
  --records "$work/records" --out "$bundle" >"$work/log" 2>&1 || fail "$(cat "$work/log")"
cat >"$work/plain.c" <<'TEXT'
#include <evoke/bundle.h>
#include <stdio.h>
int main(int count, char **arguments) {
    const evoke_number numbers[] = {{"side", 56}, {"cin", 64}, {"cout", 64}, {"taps", 9}, {"images", 4}, {"density", 0.6}};
    const evoke_shape shape = {numbers, 6};
    const evoke_gpu gpu = {"NVIDIA H200", 90, 132};
    evoke_geometry at;
    evoke_bundle *b = NULL;
    evoke_choice choice;
    evoke_error error;
    evoke_gpu here;
    char name[256];
    if (count != 2 || evoke_bundle_open(arguments[1], &b, &error) || evoke_bundle_verify(b, &error) ||
        evoke_bundle_resolve(b, "bp_data_masked", &gpu, &shape, 0, &choice, &error) ||
        evoke_variant_geometry(choice.variant, &shape, &at, &error)) {
        (void)fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    printf("%s %s %d\n", evoke_rung_name(choice.rung), evoke_bundle_version(), at.grid[0] > 0);
    if (evoke_gpu_current(&here, name, &error) == EVOKE_INFRA)
        printf("%s\n", error.text);
    evoke_bundle_close(b);
    return 0;
}
TEXT
"$compiler" "${strict[@]}" -o "$work/plain" "$work/plain.c" "${flags[@]}"
"$compiler" "${strict[@]}" -o "$work/plain-static" "$work/plain.c" "$work/prefix/lib/libevoke-bundle.a" \
  "${all[@]}"
for program in plain plain-static; do
  LD_LIBRARY_PATH=$work/prefix/lib ldd "$work/$program" >"$work/ldd"
  ! grep -iE 'llvm|sqlite|libcuda|not found' "$work/ldd" || fail "$program needs more than it should"
  LD_LIBRARY_PATH=$work/prefix/lib "$work/$program" "$bundle" >"$work/out" || fail "$program failed"
  grep -q '^exact-gpu 0\.6 1$' "$work/out" || fail "$program: $(cat "$work/out")"
  [[ -e /dev/nvidia0 ]] || grep -q '^no CUDA driver on this machine' "$work/out" || fail "$program: $(cat "$work/out")"
done
! LD_LIBRARY_PATH=$work/prefix/lib ldd "$work/plain-static" | grep -q libevoke || fail "it is not static"

# the example's lines that are neither blank nor comment are at most 60
code=$("$compiler" -fpreprocessed -dD -E -P examples/scheduler/scheduler.c | grep -c .)
((code <= 60)) || fail "the example has $code lines of code"

# the example, through pkg-config and through CMake, on the stand-in
"$compiler" "${strict[@]}" -o "$work/program" examples/scheduler/scheduler.c "${flags[@]}" -L"$standin" -lcuda
mkdir "$work/user"
cat >"$work/user/CMakeLists.txt" <<TEXT
cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES C)
find_package(evoke-bundle 0.1 REQUIRED)
foreach(kind bundle bundle_static)
  add_executable(\${kind} $source/examples/scheduler/scheduler.c)
  target_link_libraries(\${kind} PRIVATE evoke::\${kind} $standin/libcuda.so)
endforeach()
TEXT
cmake -S "$work/user" -B "$work/user/build" -DCMAKE_C_COMPILER="$compiler" \
  -DCMAKE_PREFIX_PATH="$work/prefix" >"$work/log" 2>&1 || fail "$(cat "$work/log")"
cmake --build "$work/user/build" >"$work/log" 2>&1 || fail "$(cat "$work/log")"
export LD_LIBRARY_PATH=$work/prefix/lib:$standin EVOKE_STANDIN=h200 EVOKE_STANDIN_QUIET=1
layers=examples/scheduler/layers.txt
sed -n '1p;8p;14p' $layers >"$work/short" # the whole list takes seconds
"$work/program" "$bundle" $layers >"$work/out" 2>&1 || fail "program: $(cat "$work/out")"
grep -q '^15 of 15 layers are right$' "$work/out" || fail "program: $(cat "$work/out")"
grep -q '^resnet18.layer4.1.conv2: bp_data_masked: ' "$work/out" || fail "program: $(cat "$work/out")"
for program in user/build/bundle user/build/bundle_static; do
  "$work/$program" "$bundle" "$work/short" >"$work/out" 2>&1 || fail "$program: $(cat "$work/out")"
  grep -q '^3 of 3 layers are right$' "$work/out" || fail "$program: $(cat "$work/out")"
done

# and Python, without a build
if command -v python3 >/dev/null; then
  python3 examples/python/scheduler.py "$bundle" "$work/short" >"$work/python" 2>&1 || fail "$(cat "$work/python")"
  diff "$work/out" "$work/python" || fail "Python and C do not say the same"
fi

# a damaged bundle is refused in words
head -c 5000 "$bundle" >"$work/cut.tar"
! "$work/program" "$work/cut.tar" $layers >"$work/out" 2>&1 || fail "a tar that is cut off is taken"
grep -q 'cut off' "$work/out" || fail "$(cat "$work/out")"
echo 'odd bp_data_masked images=1 side=x' >"$work/short"
! "$work/program" "$bundle" "$work/short" >"$work/out" 2>&1 || fail "a shape without a number is taken"
grep -q "'side' must be a decimal number" "$work/out" || fail "$(cat "$work/out")"
