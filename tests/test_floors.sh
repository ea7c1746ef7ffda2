#!/usr/bin/env bash
# The order of the floors: reads every #include of the tree and holds it against DESIGN's house. It
# first proves on small bad trees that it can fail.
set -euo pipefail

# Prints "FILE:LINE: what is wrong" for each include that breaks a rule, in the tree at $1.
check_tree() (
  cd "$1"
  local folders=() folder
  for folder in base corpora kernels ir fitness bundle tuner; do
    [[ ! -d $folder ]] || folders+=("$folder")
  done
  # shellcheck disable=SC2016
  find "${folders[@]}" -type f \( -name '*.c' -o -name '*.h' -o -name '*.def' \) -print0 |
    sort -z | xargs -0 -r awk '
  BEGIN {
    # a floor, and what stands below it; ir and fitness do not know each other
    sees["base"] = " base "
    sees["corpora"] = sees["base"] "corpora "
    sees["kernels"] = sees["corpora"] "kernels "
    sees["ir"] = sees["kernels"] "ir "
    sees["fitness"] = sees["kernels"] "fitness "
    sees["bundle"] = sees["kernels"] "ir fitness bundle "
    sees["tuner"] = sees["bundle"] "tuner "
  }
  function wrong(what) { printf "%s:%d: %s\n", FILENAME, FNR, what }
  function check_system(name) {
    if (name ~ /^llvm(-c)?\// && FILENAME !~ /^ir\/[^\/]*\.c$/ && FILENAME !~ /^ir\/[^\/]*internal\.h$/)
      wrong("LLVM is for ir/*.c alone: " name)
    if (name ~ /(^|\/)sqlite3[a-z]*\.h$/ && FILENAME != "tuner/records.c")
      wrong("SQLite is for tuner/records.c alone: " name)
    if (name ~ /(^|\/)(cuda|cuda_[a-z_0-9]*|cupti[a-z_]*|nvrtc|nvml|nvPTXCompiler)\.h$/ && FILENAME !~ /^fitness\/cuda\//)
      wrong("CUDA is for fitness/cuda/ alone: " name)
  }
  function check_own(name,   floor, target, own) {
    own = FILENAME
    sub(/\/.*/, "", own)
    if (name ~ /(^|\/)\.\.(\/|$)/) { wrong("an include with .. hides its floor: " name); return }
    floor = name
    if (!sub(/\/.*/, "", floor)) { floor = own } # a name without a folder is of the same floor
    if (!(floor in sees)) { wrong("no such floor: " name); return }
    if (index(sees[own], " " floor " ") == 0) wrong(own "/ may not see " floor "/: " name)
    if (name ~ /^ir\/[^\/]*internal\.h$/ && FILENAME !~ /^ir\/[^\/]*(\.c|internal\.h)$/)
      wrong("the inside of ir is for ir/*.c alone: " name)
    if (own == "bundle" && FILENAME ~ /^bundle\/reader/ && name !~ /^base\// && name !~ /^(bundle\/)?reader[^\/]*$/)
      wrong("the reader of bundles sees base/ and itself only: " name)
  }
  # a kernel source that is made of text, or a type of the driver, outside its folder
  FILENAME !~ /^fitness\/cuda\// && /(^|[^A-Za-z0-9_"])CU(device|context|module|function|deviceptr|stream|event|result|jit_option)([^A-Za-z0-9_]|$)/ && !/^ *(\/?\*|\/\/)/ {
    wrong("CUDA is for fitness/cuda/ alone: " $0)
  }
  /^[ \t]*#[ \t]*include/ {
    line = $0
    if (match(line, /<[^>]+>/)) {
      check_system(substr(line, RSTART + 1, RLENGTH - 2))
    } else if (match(line, /"[^"]+"/)) {
      name = substr(line, RSTART + 1, RLENGTH - 2)
      check_system(name)
      if (name !~ /^(llvm|llvm-c)\// && name !~ /^(sqlite3|cuda)\.h$/) check_own(name)
    } else {
      wrong("an include by macro cannot be checked")
    }
  }'
)

# expect FILE LINE-OF-THE-FILE WORDS: a tree with that file alone must be refused with these words,
# or, with no words, pass.
expect() {
  local tree got
  tree=$(mktemp -d)
  mkdir -p "$tree/$(dirname "$1")"
  printf '%s\n' '/* A probe. */' "$2" >"$tree/$1"
  got=$(check_tree "$tree")
  rm -rf "$tree"
  if [[ -z $3 && -n $got ]] || [[ -n $3 && $got != "$1:2: $3"* ]]; then
    printf 'the check of floors is broken: %s in %s gave "%s"\n' "$2" "$1" "$got" >&2
    exit 1
  fi
}

prove_that_it_can_fail() {
  expect base/a.c '#include "corpora/corpus.h"' 'base/ may not see corpora/'
  expect corpora/a.c '#include "kernels/task.h"' 'corpora/ may not see kernels/'
  expect kernels/x/a.c '#include "ir/ir.h"' 'kernels/ may not see ir/'
  expect kernels/a.h '  #  include "fitness/fitness.h"' 'kernels/ may not see fitness/'
  expect ir/a.c '#include "fitness/device.h"' 'ir/ may not see fitness/'
  expect fitness/vm/a.c '#include "ir/ir.h"' 'fitness/ may not see ir/'
  expect fitness/vm/a.def '#include "bundle/bundle.h"' 'fitness/ may not see bundle/'
  expect bundle/a.c '#include "tuner/records.h"' 'bundle/ may not see tuner/'
  expect bundle/reader.c '#include "kernels/task.h"' 'the reader of bundles'
  expect bundle/reader.h '#include "bundle/writer.h"' 'the reader of bundles'
  expect base/a.c '#include "../ir/ir.h"' 'an include with ..'
  expect base/a.c '#include "elsewhere/a.h"' 'no such floor'
  expect base/a.c '#include SOME_MACRO' 'an include by macro'
  expect fitness/a.c '#include <llvm-c/Core.h>' 'LLVM is for'
  expect ir/ir.h '#include "llvm-c/Core.h"' 'LLVM is for'
  expect tuner/a.c '#include "ir/internal.h"' 'the inside of ir'
  expect ir/a.h '#include "ir/internal.h"' 'the inside of ir'
  expect tuner/search.c '#include <sqlite3.h>' 'SQLite is for'
  expect fitness/vm/a.c '#include <cuda.h>' 'CUDA is for'
  expect fitness/device.h 'struct a { CUdeviceptr at; };' 'CUDA is for'
  expect tuner/records.c '#include <sqlite3.h>' ''
  expect ir/a.c '#include <llvm-c/Core.h>' ''
  expect ir/internal.h '#include <llvm-c/Core.h>' ''
  expect ir/b.c '#include "ir/internal.h"' ''
  expect ir/b_internal.h '#include "ir/internal.h"' ''
  expect fitness/cuda/a.c '#include <cuda.h>' ''
  expect tuner/a.c '#include "bundle/bundle.h"' ''
  expect bundle/reader.c '#include "bundle/reader.h"' ''
  expect bundle/a.c '#include "ir/ir.h"' ''
}

prove_that_it_can_fail
problems=$(check_tree .)
if [[ -n $problems ]]; then
  printf '%s\n' "$problems" >&2
  exit 1
fi
