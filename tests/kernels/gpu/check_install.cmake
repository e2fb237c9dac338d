# Installs the GPU tests, moves the folder and runs what is in it: without a GPU every test skips with its reason.
# SPDX-License-Identifier: Apache-2.0
file(REMOVE_RECURSE ${FOLDER} ${FOLDER}_moved)
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --component gpu-tests --prefix ${FOLDER}
  OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
file(RENAME ${FOLDER} ${FOLDER}_moved)
execute_process(COMMAND env -i /bin/sh ${FOLDER}_moved/run --gtest_brief=1 --gtest_filter=CudaKernels.*
  OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE result)
if(NOT result EQUAL 0 OR NOT output MATCHES "(PASSED|SKIPPED)")
  message(FATAL_ERROR "The installed tests did not run (${result}):\n${output}")
endif()
file(REMOVE_RECURSE ${FOLDER}_moved)
