# The Debian packages the project stands on. EVOKE_STATIC takes all of them as archives, for a binary
# that needs nothing but the C library: tests/gpu/pack.sh.
option(EVOKE_STATIC "link LLVM (its NVPTX back end alone) and all other libraries as archives" OFF)
set(OPENSSL_USE_STATIC_LIBS ${EVOKE_STATIC})
find_package(PkgConfig REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
pkg_check_modules(SQLITE3 REQUIRED IMPORTED_TARGET sqlite3)
if(EVOKE_TESTS)
  pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)
endif()

if(EVOKE_STATIC)
  set_property(TARGET PkgConfig::JANSSON PROPERTY INTERFACE_LINK_LIBRARIES ${JANSSON_LIBDIR}/libjansson.a)
  set_property(TARGET PkgConfig::SQLITE3 PROPERTY INTERFACE_LINK_LIBRARIES ${SQLITE3_LIBDIR}/libsqlite3.a m)
endif()

# LLVM through llvm-config-19: the C API of one shared library, nothing of LLVM's CMake.
find_program(EVOKE_LLVM_CONFIG NAMES llvm-config-19 REQUIRED)
execute_process(COMMAND ${EVOKE_LLVM_CONFIG} --includedir OUTPUT_VARIABLE EVOKE_LLVM_INCLUDE OUTPUT_STRIP_TRAILING_WHITESPACE)
execute_process(COMMAND ${EVOKE_LLVM_CONFIG} --libdir OUTPUT_VARIABLE EVOKE_LLVM_LIBDIR OUTPUT_STRIP_TRAILING_WHITESPACE)
add_library(evoke_llvm INTERFACE)
target_include_directories(evoke_llvm SYSTEM INTERFACE ${EVOKE_LLVM_INCLUDE})
if(EVOKE_STATIC)
  execute_process(COMMAND ${EVOKE_LLVM_CONFIG} --link-static --libs nvptx passes irreader bitreader bitwriter linker
    OUTPUT_VARIABLE EVOKE_LLVM_ARCHIVES OUTPUT_STRIP_TRAILING_WHITESPACE)
  separate_arguments(EVOKE_LLVM_ARCHIVES)
  target_link_libraries(evoke_llvm INTERFACE -L${EVOKE_LLVM_LIBDIR} ${EVOKE_LLVM_ARCHIVES}
    -Wl,-Bstatic -lz -lzstd -lstdc++ -Wl,-Bdynamic -static-libgcc m ${CMAKE_DL_LIBS} pthread)
else()
  target_link_libraries(evoke_llvm INTERFACE ${EVOKE_LLVM_LIBDIR}/libLLVM-19.so)
endif()
