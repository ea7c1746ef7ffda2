# One INTERFACE target for warnings and sanitizers; no global flags.
option(EVOKE_SANITIZE "address and undefined-behaviour sanitizers" OFF)

add_library(evoke_flags INTERFACE)
target_compile_options(evoke_flags INTERFACE
  -Wall -Wextra -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla
  -ffp-contract=off -fno-strict-aliasing -fvisibility=hidden)
# gcc 12 alone: texts for people are cut by snprintf on purpose; a pointer that a function gives back
# through its caller's variable is no dangling one.
target_compile_options(evoke_flags INTERFACE
  $<$<C_COMPILER_ID:GNU>:-Wno-format-truncation>
  $<$<C_COMPILER_ID:GNU>:-Wno-dangling-pointer>)
target_compile_definitions(evoke_flags INTERFACE _GNU_SOURCE)
if(EVOKE_SANITIZE)
  target_compile_options(evoke_flags INTERFACE
    -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(evoke_flags INTERFACE -fsanitize=address,undefined)
endif()
# A program that calls nothing of LLVM does not load its library: the start of one that does takes 0.1 s.
target_link_options(evoke_flags INTERFACE -Wl,--as-needed)
# GNU ld takes 2 seconds for each program that links LLVM's shared library, gold a quarter of that; Debian
# 12's binutils bring both. A shared library by gold exports _end and _edata: GNU ld links those.
find_program(EVOKE_GOLD NAMES ld.gold)
if(EVOKE_GOLD)
  target_link_options(evoke_flags INTERFACE
    "$<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-fuse-ld=gold>")
endif()
