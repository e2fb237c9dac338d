# Warnings, sanitizers and include paths that every target of the project shares.
# SPDX-License-Identifier: Apache-2.0

# g++ collects its garbage at every doubling from 128 MB on. With 768 MB to begin with it takes 16 % less time for 260 MB
# more (core/lowering as one source, g++ 12, measured 2026-11).
add_compile_options("$<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=786432>")

function(fuseline_target target)
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/generated)
  # nvcc's generated host code does not live up to these, so .cu files get the ones that it does.
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wconversion>
    $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-Wshadow>
    # Aggregates are initialised by the fields that differ from their defaults.
    $<$<COMPILE_LANGUAGE:CXX>:-Wno-missing-field-initializers>
    # g++ 12 finds a std::variant that is inlined into a Result<T> uninitialized where it is not.
    $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:-Wno-maybe-uninitialized>)
  if(CMAKE_COMPILE_WARNING_AS_ERROR AND NOT FUSELINE_SANITIZE)
    # In CI nobody steps through the code; it compiles faster without debug information.
    target_compile_options(${target} PRIVATE $<$<CONFIG:RelWithDebInfo>:-g0>)
  endif()
  if(FUSELINE_SANITIZE)
    # Left out are the checks of every single pointer and of every variable's scope: they double the time of a build. The
    # address sanitizer sees pointers that are null or dangle into the heap as well.
    target_compile_options(${target} PUBLIC -fsanitize=${FUSELINE_SANITIZE} -fno-omit-frame-pointer
                           -fno-sanitize=null,object-size,vptr,alignment,pointer-overflow,nonnull-attribute
                           -fno-sanitize-address-use-after-scope)
    target_link_options(${target} PUBLIC -fsanitize=${FUSELINE_SANITIZE})
  endif()
endfunction()

# fuseline_compile_together(<target> <group> <sources>): as one source, unless FUSELINE_COMPILE_TOGETHER is off. It takes
# half as long or less. Names in anonymous namespaces must differ within a group.
function(fuseline_compile_together target group)
  if(NOT FUSELINE_COMPILE_TOGETHER)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  set_source_files_properties(${ARGN} TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP ${group})
endfunction()

# fuseline_compile_in_tens(<target> <sources>): so many sources that all of them together would take too much memory.
function(fuseline_compile_in_tens target)
  compile_in_groups(${target} sources 10 ${ARGN})
endfunction()

# fuseline_compile_by_folder(<target> [<pattern>]): the sources of each folder together, of a large one thirty at a time,
# but for those that match the regular expression.
function(fuseline_compile_by_folder target)
  get_target_property(sources ${target} SOURCES)
  foreach(pattern IN LISTS ARGN ITEMS "^[$]<")
    list(FILTER sources EXCLUDE REGEX ${pattern})
  endforeach()
  foreach(source IN LISTS sources)
    get_filename_component(source ${source} ABSOLUTE)
    get_filename_component(folder ${source} DIRECTORY)
    file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${folder})
    string(REPLACE / _ folder ${folder})
    list(APPEND folders ${folder})
    list(APPEND sources_of_${folder} ${source})
  endforeach()
  list(REMOVE_DUPLICATES folders)
  foreach(folder IN LISTS folders)
    compile_in_groups(${target} ${folder} 30 ${sources_of_${folder}})
  endforeach()
endfunction()

# compile_in_groups(<target> <name> <size> <sources>): groups of so many sources.
function(compile_in_groups target name size)
  set(number 0)
  foreach(source IN LISTS ARGN)
    math(EXPR group "${number} / ${size}")
    math(EXPR number "${number} + 1")
    fuseline_compile_together(${target} ${name}_${group} ${source})
  endforeach()
endfunction()

# fuseline_precompile_libraries(<target>): the headers of libraries that what core's headers include takes longest with.
function(fuseline_precompile_libraries target)
  foreach(header IN ITEMS nlohmann/json.hpp fmt/format.h functional map string vector)
    target_precompile_headers(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:<${header}$<ANGLE-R>>")
  endforeach()
endfunction()

# fuseline_quick_to_compile(<target>): for code that waits for people or runs once. Its optimization takes longer than it
# will ever save.
function(fuseline_quick_to_compile target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:RelWithDebInfo>:-Og> $<$<CONFIG:Release>:-O1>)
endfunction()
