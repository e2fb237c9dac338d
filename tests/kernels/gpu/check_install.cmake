# Unpacks the kit elsewhere and runs what is in it: without a GPU every test skips with its reason.
# SPDX-License-Identifier: Apache-2.0
file(REMOVE_RECURSE ${FOLDER})
file(ARCHIVE_EXTRACT INPUT ${ARCHIVE} DESTINATION ${FOLDER})
set(kit ${FOLDER}/gpu_kit)
execute_process(COMMAND env -i LD_LIBRARY_PATH=$ENV{LD_LIBRARY_PATH}
  /bin/sh ${kit}/run --gtest_brief=1 --gtest_filter=CudaKernels.*
  OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE result)
# 77: this machine has no GPU.
if(NOT result MATCHES "^(0|77)$" OR NOT output MATCHES "(PASSED|SKIPPED)")
  message(FATAL_ERROR "The installed tests did not run (${result}):\n${output}")
endif()

# All libraries come from the folder, but for those of every system, and of a driver; none is the CPU backend's.
execute_process(COMMAND env -i LD_DEBUG=libs ${kit}/bin/fuseline devices
  OUTPUT_QUIET ERROR_VARIABLE trace RESULT_VARIABLE result)
string(REGEX MATCHALL "calling init: [^\n]+" loaded "${trace}")
if(NOT loaded)
  message(FATAL_ERROR "The dynamic linker did not tell what it loads (${result}):\n${trace}")
endif()
foreach(line IN LISTS loaded)
  string(REPLACE "calling init: " "" path "${line}")
  cmake_path(GET path FILENAME name)
  string(FIND "${path}" "${kit}/" place)
  if(place EQUAL -1 AND NOT name MATCHES "^(ld-|lib(c|m|dl|rt|pthread|stdc\\+\\+|gcc_s|cuda)\\.|libnvidia)")
    message(FATAL_ERROR "Not of the folder: ${path}")
  endif()
endforeach()
file(GLOB_RECURSE of_cpu ${kit}/lib/libdnnl* ${kit}/lib/libgomp*)
if(of_cpu)
  message(FATAL_ERROR "The kit has no CPU backend, but its libraries: ${of_cpu}")
endif()
file(REMOVE_RECURSE ${FOLDER})
