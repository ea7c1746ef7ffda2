# evoke_floor(NAME SOURCES a.c ... BELOW other-floors ... [PRIVATE packages ...])
# makes the static library evoke_NAME. Sources include headers as "floor/header.h"; tests/test_floors
# checks that a floor includes only those named in BELOW.
function(evoke_floor name)
  cmake_parse_arguments(FLOOR "" "" "SOURCES;BELOW;PRIVATE" ${ARGN})
  add_library(evoke_${name} STATIC ${FLOOR_SOURCES})
  target_include_directories(evoke_${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(evoke_${name} PRIVATE evoke_flags)
  foreach(below IN LISTS FLOOR_BELOW)
    target_link_libraries(evoke_${name} PUBLIC evoke_${below})
  endforeach()
  target_link_libraries(evoke_${name} PRIVATE ${FLOOR_PRIVATE})
endfunction()
