# The Debian packages the project stands on. A target with the property EVOKE_PORTABLE links all of them
# as archives, for a binary that needs nothing but the C library (tests/gpu/pack.sh); all others
# link what is shared. The objects are the same.
find_package(PkgConfig REQUIRED)
pkg_check_modules(CRYPTO REQUIRED IMPORTED_TARGET libcrypto)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
if("tuner" IN_LIST EVOKE_FLOORS)
  pkg_check_modules(SQLITE3 REQUIRED IMPORTED_TARGET sqlite3)
endif()
if(EVOKE_TESTS)
  pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)
endif()
set(EVOKE_IS_PORTABLE "$<BOOL:$<TARGET_PROPERTY:EVOKE_PORTABLE>>")
foreach(package CRYPTO:libcrypto.a JANSSON:libjansson.a SQLITE3:libsqlite3.a)
  string(REPLACE ":" ";" package ${package})
  list(POP_FRONT package prefix)
  if(NOT TARGET PkgConfig::${prefix})
    continue()
  endif()
  set_property(TARGET PkgConfig::${prefix} PROPERTY INTERFACE_LINK_LIBRARIES
    "$<IF:${EVOKE_IS_PORTABLE},${${prefix}_LIBDIR}/${package},${${prefix}_LINK_LIBRARIES}>" m)
endforeach()

if(NOT "ir" IN_LIST EVOKE_FLOORS)
  return()
endif()

# LLVM through llvm-config-19: the C API of one shared library, nothing of LLVM's CMake. A portable
# target has of LLVM the NVPTX back end alone, and so has one with the property EVOKE_LLVM_ARCHIVES: it starts
# in a third of the time, as the loader has no shared library to relocate.
find_program(EVOKE_LLVM_CONFIG NAMES llvm-config-19 REQUIRED)
execute_process(COMMAND ${EVOKE_LLVM_CONFIG} --includedir OUTPUT_VARIABLE EVOKE_LLVM_INCLUDE OUTPUT_STRIP_TRAILING_WHITESPACE)
execute_process(COMMAND ${EVOKE_LLVM_CONFIG} --libdir OUTPUT_VARIABLE EVOKE_LLVM_LIBDIR OUTPUT_STRIP_TRAILING_WHITESPACE)
execute_process(COMMAND ${EVOKE_LLVM_CONFIG} --link-static --libs nvptx passes irreader bitreader bitwriter linker
  OUTPUT_VARIABLE EVOKE_LLVM_ARCHIVES OUTPUT_STRIP_TRAILING_WHITESPACE)
separate_arguments(EVOKE_LLVM_ARCHIVES)
list(TRANSFORM EVOKE_LLVM_ARCHIVES REPLACE "^-l(.*)$" "${EVOKE_LLVM_LIBDIR}/lib\\1.a")
set(EVOKE_HAS_LLVM "$<OR:${EVOKE_IS_PORTABLE},$<BOOL:$<TARGET_PROPERTY:EVOKE_LLVM_ARCHIVES>>>")
add_library(evoke_llvm INTERFACE)
target_include_directories(evoke_llvm SYSTEM INTERFACE ${EVOKE_LLVM_INCLUDE})
target_link_libraries(evoke_llvm INTERFACE
  "$<IF:${EVOKE_HAS_LLVM},${EVOKE_LLVM_ARCHIVES};-l:libz.a;-l:libzstd.a;-l:libstdc++.a;-static-libgcc;m;${CMAKE_DL_LIBS};pthread,${EVOKE_LLVM_LIBDIR}/libLLVM-19.so>")
