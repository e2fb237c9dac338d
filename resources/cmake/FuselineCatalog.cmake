# add_catalog(<target> <name> <entry>...): compiles <entry>.cpp for every entry, such as gemm/linear, below the calling
# folder and writes the manifest generated/<folder>/<name>.inc, one line an entry, such as linear, in the order given. A
# folder's catalog.cpp includes the manifest, so that there is one visible, ordered list and nothing for the linker to
# drop.
# SPDX-License-Identifier: Apache-2.0

function(add_catalog target name)
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  set(manifest "")
  foreach(entry IN LISTS ARGN)
    target_sources(${target} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/${entry}.cpp)
    get_filename_component(entry_name ${entry} NAME)
    string(APPEND manifest "FUSELINE_CATALOG_ENTRY(${entry_name})\n")
  endforeach()
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/${folder}/${name}.inc CONTENT "${manifest}" @ONLY)
endfunction()
