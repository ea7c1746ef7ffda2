# find_package(evoke-bundle): the targets evoke::bundle (shared) and evoke::bundle_static.
get_filename_component(_evoke_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET evoke::bundle)
  add_library(evoke::bundle SHARED IMPORTED)
  set_target_properties(evoke::bundle PROPERTIES
    IMPORTED_LOCATION "${_evoke_prefix}/lib/libevoke-bundle.so.0.6.0"
    IMPORTED_SONAME "libevoke-bundle.so.0"
    INTERFACE_INCLUDE_DIRECTORIES "${_evoke_prefix}/include")
  add_library(evoke::bundle_static STATIC IMPORTED)
  set_target_properties(evoke::bundle_static PROPERTIES
    IMPORTED_LOCATION "${_evoke_prefix}/lib/libevoke-bundle.a"
    INTERFACE_INCLUDE_DIRECTORIES "${_evoke_prefix}/include"
    INTERFACE_LINK_LIBRARIES "jansson;crypto;m;dl;pthread")
endif()
unset(_evoke_prefix)
