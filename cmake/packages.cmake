# The Debian packages the project stands on.
find_package(PkgConfig REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
pkg_check_modules(SQLITE3 REQUIRED IMPORTED_TARGET sqlite3)
if(EVOKE_TESTS)
  pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)
endif()

# LLVM through llvm-config-19: the C API of one shared library, nothing of LLVM's CMake.
find_program(EVOKE_LLVM_CONFIG NAMES llvm-config-19 REQUIRED)
execute_process(COMMAND ${EVOKE_LLVM_CONFIG} --includedir OUTPUT_VARIABLE EVOKE_LLVM_INCLUDE OUTPUT_STRIP_TRAILING_WHITESPACE)
execute_process(COMMAND ${EVOKE_LLVM_CONFIG} --libdir OUTPUT_VARIABLE EVOKE_LLVM_LIBDIR OUTPUT_STRIP_TRAILING_WHITESPACE)
add_library(evoke_llvm INTERFACE)
target_include_directories(evoke_llvm SYSTEM INTERFACE ${EVOKE_LLVM_INCLUDE})
target_link_libraries(evoke_llvm INTERFACE ${EVOKE_LLVM_LIBDIR}/libLLVM-19.so)
