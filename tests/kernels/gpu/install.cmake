# A folder with all that a machine with a GPU needs besides a driver and the CUDA libraries:
#   cmake --install BUILD --component gpu-tests --prefix FOLDER
# FOLDER may be moved; FOLDER/run runs the tests in it, FOLDER/bin/bench_cuda_products compares algorithms.
# SPDX-License-Identifier: Apache-2.0
set_target_properties(test_kernels_gpu bench_cuda_products fuseline PROPERTIES INSTALL_RPATH "$ORIGIN/../lib")
set_target_properties(fuseline_cuda PROPERTIES INSTALL_RPATH "$ORIGIN/..")
# A RUNPATH is for a program's own libraries only, a RPATH is for theirs, too.
foreach(program test_kernels_gpu bench_cuda_products fuseline)
  target_link_options(${program} PRIVATE -Wl,--disable-new-dtags)
endforeach()
install(TARGETS test_kernels_gpu bench_cuda_products fuseline fuseline_cuda RUNTIME_DEPENDENCY_SET gpu_tests
  RUNTIME DESTINATION bin COMPONENT gpu-tests EXCLUDE_FROM_ALL
  LIBRARY DESTINATION lib/fuseline COMPONENT gpu-tests EXCLUDE_FROM_ALL)
# What comes with every system, and with the driver, stays out. The system's C++ library may be older than this one, which
# may need a newer C library than the system has.
install(RUNTIME_DEPENDENCY_SET gpu_tests
  PRE_EXCLUDE_REGEXES "^ld-linux" "^lib(c|m|dl|rt|pthread)\\.so" "^libstdc\\+\\+" "^libgcc_s" "^libcuda\\.so" "^libnvidia"
  DESTINATION lib COMPONENT gpu-tests EXCLUDE_FROM_ALL)
install(PROGRAMS ${CMAKE_CURRENT_LIST_DIR}/run DESTINATION . COMPONENT gpu-tests EXCLUDE_FROM_ALL)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/resources/examples DESTINATION share/fuseline COMPONENT gpu-tests
        EXCLUDE_FROM_ALL PATTERN runs EXCLUDE)
install(PROGRAMS ${PROJECT_SOURCE_DIR}/tests/bench/peer_torch.py DESTINATION share/fuseline/bench COMPONENT gpu-tests
        EXCLUDE_FROM_ALL)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/tests/bench/peer DESTINATION share/fuseline/bench COMPONENT gpu-tests
        EXCLUDE_FROM_ALL PATTERN __pycache__ EXCLUDE)

# The folder works where it was moved to, with nothing of this machine's environment.
add_test(NAME gpu.install COMMAND ${CMAKE_COMMAND}
  -DBUILD=${PROJECT_BINARY_DIR} -DFOLDER=${CMAKE_CURRENT_BINARY_DIR}/gpu_tests
  -P ${CMAKE_CURRENT_LIST_DIR}/check_install.cmake)
set_tests_properties(gpu.install PROPERTIES LABELS kernels)

# What --record runs, with other programs in the place of those that measure.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_test(NAME gpu.record COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_LIST_DIR}/test_run.py)
set_tests_properties(gpu.record PROPERTIES LABELS kernels)
