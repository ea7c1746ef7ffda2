# evoke_test(PATH LIBS targets ... [SOURCES more.c ...] [NEEDS targets ...] [ARGS ...] [LINK options ...]
#            [TIMEOUT seconds])
# makes the executable build/tests/NAME, NAME being the last part of PATH, from tests/PATH.c and SOURCES below tests/, links cmocka and the house's flags, and
# registers it with ctest; it runs in the source root. LIBS are linked; NEEDS are only built before
# (the binary `evoke`, say). A test whose LIBS or NEEDS are not all there is left out with a note, so
# that one floor can be built alone.

# What every test runs under, with tests/compiled/clang.c before any other clang-19; a sanitizer's finding is a
# failure. Memory that is freed stays with the process: giving it back costs a fifth of the tests' time.
set(EVOKE_TEST_ENVIRONMENT
  "ASAN_OPTIONS=detect_leaks=1:abort_on_error=0:strict_string_checks=1:detect_stack_use_after_return=1:allocator_release_to_os_interval_ms=-1:use_madv_dontdump=0"
  "UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1"
  "LC_ALL=C")
find_program(EVOKE_SYMBOLIZER NAMES llvm-symbolizer-19 llvm-symbolizer)
if(EVOKE_SYMBOLIZER) # Debian's name carries the version, and the sanitizers look for the plain one
  list(APPEND EVOKE_TEST_ENVIRONMENT "ASAN_SYMBOLIZER_PATH=${EVOKE_SYMBOLIZER}")
endif()

# Sets `out` to the first of the targets that is not there, or to "".
function(evoke_missing_target out)
  set(${out} "" PARENT_SCOPE)
  foreach(target IN LISTS ARGN)
    if(NOT TARGET ${target})
      set(${out} ${target} PARENT_SCOPE)
      return()
    endif()
  endforeach()
endfunction()

# For tests that start evoke: malloc asks the kernel for large pages, whose faults are a fifth of a search's
# time. Programs that measure their own memory go without.
set(EVOKE_LARGE_PAGES "GLIBC_TUNABLES=glibc.malloc.hugetlb=1")

function(evoke_test_settings name timeout)
  if(NOT timeout)
    set(timeout 300)
  endif()
  set_tests_properties(${name} PROPERTIES # ctest begins with the costliest
    TIMEOUT ${timeout} COST ${timeout} ENVIRONMENT "${EVOKE_TEST_ENVIRONMENT}"
    ENVIRONMENT_MODIFICATION "PATH=path_list_prepend:${PROJECT_BINARY_DIR}/tests/compiled")
endfunction()

function(evoke_test path)
  get_filename_component(name ${path} NAME)
  cmake_parse_arguments(TEST "" "TIMEOUT" "LIBS;SOURCES;NEEDS;ARGS;LINK" ${ARGN})
  evoke_missing_target(missing ${TEST_LIBS} ${TEST_NEEDS})
  if(missing)
    message(STATUS "${name} is left out: there is no ${missing}")
    return()
  endif()
  list(TRANSFORM TEST_SOURCES PREPEND ${PROJECT_SOURCE_DIR}/tests/)
  add_executable(${name} ${PROJECT_SOURCE_DIR}/tests/${path}.c ${TEST_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_definitions(${name} PRIVATE
    EVOKE_SOURCE_DIR="${PROJECT_SOURCE_DIR}" EVOKE_BINARY_DIR="${PROJECT_BINARY_DIR}")
  target_link_libraries(${name} PRIVATE evoke_flags ${TEST_LIBS} PkgConfig::CMOCKA)
  target_link_options(${name} PRIVATE ${TEST_LINK})
  if(TEST_NEEDS)
    add_dependencies(${name} ${TEST_NEEDS})
  endif()
  add_test(NAME ${name} COMMAND ${name} ${TEST_ARGS} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  evoke_test_settings(${name} "${TEST_TIMEOUT}")
  if("evoke" IN_LIST TEST_NEEDS)
    set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT "${EVOKE_LARGE_PAGES}")
  endif()
endfunction()

# evoke_script_test(PATH [NEEDS targets ...] [TIMEOUT seconds]): tests/PATH.sh, run by bash in the
# source root with the build folder as its argument.
function(evoke_script_test path)
  get_filename_component(name ${path} NAME)
  cmake_parse_arguments(TEST "" "TIMEOUT" "NEEDS" ${ARGN})
  evoke_missing_target(missing ${TEST_NEEDS})
  if(missing)
    message(STATUS "${name} is left out: there is no ${missing}")
    return()
  endif()
  add_test(NAME ${name} COMMAND bash ${PROJECT_SOURCE_DIR}/tests/${path}.sh ${PROJECT_BINARY_DIR}
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  evoke_test_settings(${name} "${TEST_TIMEOUT}")
  if("evoke" IN_LIST TEST_NEEDS)
    set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT "${EVOKE_LARGE_PAGES}")
  endif()
endfunction()
