#!/usr/bin/env bash
# Layers: holds every #include of the tree against cmake/layers.cmake, which lists for each folder the
# folders whose headers it may include. The script first proves on small bad trees that it can fail.
set -euo pipefail

# Prints "FILE:LINE: what is wrong" for each include that breaks a rule, in the tree at $1.
check_tree() (
  cd "$1"
  local folders=() folder
  for folder in base bundle corpora kernels ir fitness tuner; do
    [[ ! -d $folder ]] || folders+=("$folder")
  done
  # shellcheck disable=SC2016
  find "${folders[@]}" -type f \( -name '*.c' -o -name '*.h' -o -name '*.def' \) -print0 |
    sort -z | xargs -0 -r awk -v layers=cmake/layers.cmake '
  function wrong(what) { printf "%s:%d: %s\n", FILENAME, FNR, what }
  function read_layers(   line, row, count, i, other) {
    while ((getline line < layers) > 0) {
      if (line !~ /^  "[a-z\/]+:[a-z\/ ]*"\)?$/) continue
      gsub(/[")]/, "", line)
      count = split(line, row, /[: ]+/)
      for (i = row[1] == "" ? 3 : 2; i <= count; i++) {
        other = row[i]
        if (other == "") continue
        if (!(other in sees)) printf "%s: %s is no layer below %s\n", layers, other, row[row[1] == "" ? 2 : 1]
      }
      other = row[row[1] == "" ? 2 : 1]
      sub(/^[^:]*: */, "", line)
      sees[other] = " " line " "
    }
    close(layers)
  }
  BEGIN { read_layers() }
  # the innermost folder of a file that is a layer; "": none
  function layer_of(path) {
    while (sub(/\/[^\/]*$/, "", path)) if (path in sees) return path
    return ""
  }
  function check_system(name) {
    if (name ~ /^llvm(-c)?\// && FILENAME !~ /^ir\/.*\.c$/ && FILENAME !~ /^ir\/.*internal\.h$/)
      wrong("LLVM is for the sources of ir/ alone: " name)
    if (name ~ /(^|\/)sqlite3[a-z]*\.h$/ && FILENAME != "tuner/run/records.c")
      wrong("SQLite is for tuner/run/records.c alone: " name)
    if (name ~ /(^|\/)(cuda|cuda_[a-z_0-9]*|cupti[a-z_]*|nvrtc|nvml|nvPTXCompiler)\.h$/ && !is_driver() &&
        FILENAME !~ /^kernels\/include\/cuda\//) # the stand-ins for those headers, which see each other
      wrong("CUDA is for the folders of the driver alone: " name)
  }
  function is_driver() { return FILENAME ~ /^(fitness\/device\/(cuda|standin)|base\/cuda|bundle\/(header|runtime))\// }
  function check_own(name,   own, other) {
    if (name ~ /(^|\/)\.\.(\/|$)/) { wrong("an include with .. hides its layer: " name); return }
    if (name !~ /\//) return # of the same folder, or a header for kernels
    own = layer_of(FILENAME)
    other = layer_of(name)
    if (other == "") { wrong("no such layer: " name); return }
    if (other != own && index(sees[own], " " other " ") == 0)
      wrong(own "/ may not see " other "/: " name)
    if (name ~ /^ir\/.*internal\.h$/ && FILENAME !~ /^ir\/.*(\.c|internal\.h)$/)
      wrong("the inside of ir is for its sources alone: " name)
  }
  # a kernel source that is made of text, or a type of the driver, outside its folder
  !is_driver() && /(^|[^A-Za-z0-9_"])CU(device|context|module|function|deviceptr|stream|event|result|jit_option)([^A-Za-z0-9_]|$)/ && !/^ *(\/?\*|\/\/)/ {
    wrong("CUDA is for the folders of the driver alone: " $0)
  }
  /^[ \t]*#[ \t]*include/ {
    line = $0
    if (match(line, /<[^>]+>/)) {
      check_system(substr(line, RSTART + 1, RLENGTH - 2))
    } else if (match(line, /"[^"]+"/)) {
      name = substr(line, RSTART + 1, RLENGTH - 2)
      if (layer_of(name) == "") check_system(name)
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
  mkdir -p "$tree/$(dirname "$1")" "$tree/cmake"
  cp cmake/layers.cmake "$tree/cmake/"
  printf '%s\n' '/* A probe. */' "$2" >"$tree/$1"
  got=$(check_tree "$tree")
  rm -rf "$tree"
  if [[ -z $3 && -n $got ]] || [[ -n $3 && $got != "$1:2: $3"* ]]; then
    printf 'the check of layers is broken: %s in %s gave "%s"\n' "$2" "$1" "$got" >&2
    exit 1
  fi
}

# A layer that lists one above it is refused too.
expect_order() {
  local tree got
  tree=$(mktemp -d)
  mkdir -p "$tree/cmake" "$tree/base"
  sed 's/^  "corpora: *base"/  "corpora: base kernels"/' cmake/layers.cmake >"$tree/cmake/layers.cmake"
  echo '/* A probe. */' >"$tree/base/a.c"
  got=$(check_tree "$tree")
  rm -rf "$tree"
  [[ $got == *'kernels is no layer below corpora'* ]] || {
    echo "the check of layers is broken: it takes a list that names a layer above: '$got'" >&2
    exit 1
  }
}

prove_that_it_can_fail() {
  expect_order
  expect base/a.c '#include "corpora/corpus.h"' 'base/ may not see corpora/'
  expect corpora/a.c '#include "kernels/task.h"' 'corpora/ may not see kernels/'
  expect kernels/a.c '#include "ir/ir.h"' 'kernels/ may not see ir/'
  expect kernels/a.h '  #  include "fitness/gates/fitness.h"' 'kernels/ may not see fitness/gates/'
  expect ir/a.c '#include "fitness/device/device.h"' 'ir/ may not see fitness/device/'
  expect ir/a.c '#include "ir/direct/direct_internal.h"' 'ir/ may not see ir/direct/'
  expect ir/edits/a.c '#include "ir/direct/direct_internal.h"' 'ir/edits/ may not see ir/direct/'
  expect fitness/ptx/a.c '#include "fitness/vm/vm.h"' 'fitness/ptx/ may not see fitness/vm/'
  expect fitness/vm/a.c '#include "ir/ir.h"' 'fitness/vm/ may not see ir/'
  expect fitness/vm/a.def '#include "fitness/model/model.h"' 'fitness/vm/ may not see fitness/model/'
  expect fitness/device/a.c '#include "fitness/device/cuda/cuda.h"' 'fitness/device/ may not see fitness/device/cuda/'
  expect fitness/model/a.c '#include "fitness/device/device.h"' 'fitness/model/ may not see fitness/device/'
  expect bundle/a.c '#include "tuner/run/records.h"' 'bundle/ may not see tuner/run/'
  expect bundle/reader.c '#include "kernels/task.h"' 'bundle/ may not see kernels/'
  expect tuner/search/a.c '#include "tuner/worker/protocol.h"' 'tuner/search/ may not see tuner/worker/'
  expect tuner/search/a.c '#include "fitness/device/device.h"' 'tuner/search/ may not see fitness/device/'
  expect tuner/worker/a.c '#include "tuner/run/tune.h"' 'tuner/worker/ may not see tuner/run/'
  expect tuner/run/a.c '#include "tuner/cli/cli.h"' 'tuner/run/ may not see tuner/cli/'
  expect base/a.c '#include "../ir/ir.h"' 'an include with ..'
  expect base/a.c '#include "elsewhere/a.h"' 'no such layer'
  expect base/a.c '#include SOME_MACRO' 'an include by macro'
  expect fitness/gates/a.c '#include <llvm-c/Core.h>' 'LLVM is for'
  expect ir/ir.h '#include "llvm-c/Core.h"' 'LLVM is for'
  expect ir/a.h '#include "ir/internal.h"' 'the inside of ir'
  expect tuner/search/search.c '#include <sqlite3.h>' 'SQLite is for'
  expect fitness/vm/a.c '#include <cuda.h>' 'CUDA is for'
  expect fitness/device/device.h 'struct a { CUdeviceptr at; };' 'CUDA is for'
  expect tuner/run/records.c '#include <sqlite3.h>' ''
  expect ir/a.c '#include <llvm-c/Core.h>' ''
  expect ir/internal.h '#include <llvm-c/Core.h>' ''
  expect ir/direct/b_internal.h '#include "ir/internal.h"' ''
  expect ir/edits/b.c '#include "ir/internal.h"' ''
  expect fitness/device/cuda/a.c '#include <cuda.h>' ''
  expect fitness/device/standin/a.c '#include "base/cuda/driver.h"' ''
  expect bundle/runtime/a.c '#include "base/cuda/driver.h"' ''
  expect bundle/a.c '#include "base/cuda/driver.h"' 'bundle/ may not see base/cuda/'
  expect base/a.c '#include "base/cuda/driver.h"' 'base/ may not see base/cuda/'
  expect tuner/run/a.c '#include "bundle/bundle.h"' ''
  expect fitness/vm/a.c '#include "fitness/ptx/module.h"' ''
}

prove_that_it_can_fail
problems=$(check_tree .)
if [[ -n $problems ]]; then
  printf '%s\n' "$problems" >&2
  exit 1
fi
