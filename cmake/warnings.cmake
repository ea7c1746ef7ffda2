# One INTERFACE target for warnings and sanitizers; no global flags.
option(EVOKE_SANITIZE "address and undefined-behaviour sanitizers" OFF)

add_library(evoke_flags INTERFACE)
target_compile_options(evoke_flags INTERFACE
  -Wall -Wextra -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla
  -ffp-contract=off -fno-strict-aliasing -fvisibility=hidden)
target_compile_definitions(evoke_flags INTERFACE _GNU_SOURCE)
if(EVOKE_SANITIZE)
  target_compile_options(evoke_flags INTERFACE
    -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(evoke_flags INTERFACE -fsanitize=address,undefined)
endif()
