# The layers, lowest first: each is a folder and a static library, and lists the folders whose headers
# it may include beside its own. tests/test_floors.sh reads this list and checks every #include.
set(EVOKE_LAYERS
  "base:"
  "base/cuda:                 base"
  "base/ptx:                  base"
  "base/source:               base"
  "bundle:                    base base/ptx"
  "bundle/header:             base bundle"
  "bundle/runtime:            base base/cuda base/ptx bundle"
  "corpora:                   base"
  "kernels:                   base corpora"
  "kernels/oracles:           base kernels"
  "ir:                        base base/source"
  "ir/edits:                  base ir"
  "ir/direct:                 base ir"
  "ir/structure/analyses:     base ir"
  "ir/structure/passes:       base ir ir/structure/analyses"
  "ir/structure:              base ir ir/structure/analyses ir/structure/passes"
  "ir/structure/atomics:      base ir ir/structure/analyses ir/structure"
  "ir/structure/turns:        base ir ir/structure/analyses ir/structure"
  "fitness/ptx:               base"
  "fitness/vm:                base fitness/ptx"
  "fitness/vm/exec:           base fitness/ptx fitness/vm"
  "fitness/model:             base fitness/ptx fitness/vm"
  "fitness/device:            base fitness/vm fitness/model"
  "fitness/device/cuda:       base base/cuda base/ptx fitness/model fitness/device"
  "fitness/device/calibrate:  base fitness/vm fitness/model fitness/device"
  "fitness/device/standin:    base base/cuda base/ptx base/source fitness/vm fitness/model fitness/device/cuda"
  "fitness/gates:             base kernels fitness/vm fitness/device"
  "tuner/search:              base kernels ir fitness/gates"
  "tuner/worker:              base kernels ir fitness/device fitness/gates tuner/search"
  "tuner/stress:              base kernels fitness/device fitness/gates"
  "tuner/run:                 base bundle kernels ir fitness/model fitness/device fitness/device/cuda fitness/gates tuner/search tuner/worker tuner/stress"
  "tuner/check:               base base/ptx bundle kernels ir fitness/model fitness/device fitness/device/cuda fitness/gates tuner/worker tuner/stress tuner/run"
  "tuner/report:              base bundle kernels ir fitness/model fitness/gates tuner/search tuner/worker tuner/run"
  "tuner/exports:             base bundle corpora kernels fitness/device fitness/gates tuner/search tuner/run"
  "tuner/cli:                 base bundle bundle/header corpora kernels ir fitness/ptx fitness/vm fitness/model fitness/device fitness/device/calibrate fitness/gates tuner/search tuner/worker tuner/stress tuner/run tuner/check tuner/report tuner/exports"
  "tuner/init:                base base/source corpora kernels fitness/ptx fitness/vm tuner/worker tuner/cli"
  "tuner/cases:               base corpora kernels fitness/device fitness/gates tuner/worker tuner/cli"
  "tuner/bench:               base bundle kernels ir fitness/model fitness/device fitness/device/cuda fitness/gates tuner/worker tuner/run tuner/cli"
  "tuner:                     base fitness/device tuner/cli")

# evoke_library(SOURCES a.c ... [LINKS folders ...] [PRIVATE packages ...]), in the folder of a layer, makes
# the library evoke_FOLDER ("evoke_fitness_vm" in fitness/vm). LINKS: higher layers that define what
# it only declares.
function(evoke_library)
  cmake_parse_arguments(LIB "" "" "SOURCES;LINKS;PRIVATE" ${ARGN})
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  string(REPLACE "/" "_" name ${folder})
  set(sees)
  foreach(row IN LISTS EVOKE_LAYERS)
    if(row MATCHES "^${folder}: *(.*)$")
      string(REPLACE " " ";" sees "${CMAKE_MATCH_1}")
    endif()
  endforeach()
  add_library(evoke_${name} STATIC ${LIB_SOURCES})
  target_include_directories(evoke_${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(evoke_${name} PRIVATE evoke_flags)
  foreach(other IN LISTS sees LIB_LINKS)
    string(REPLACE "/" "_" other ${other})
    target_link_libraries(evoke_${name} PUBLIC evoke_${other})
  endforeach()
  target_link_libraries(evoke_${name} PRIVATE ${LIB_PRIVATE})
endfunction()
