# The kit: a folder with all that a machine with a GPU needs besides a driver and the CUDA libraries, and an archive of it.
#   ninja -C BUILD gpu_kit                                          makes BUILD/gpu_kit.tar.xz, stripped
#   cmake --install BUILD --component gpu-tests --prefix FOLDER     makes the folder alone
# The folder may be moved; FOLDER/run runs the tests in it, or records all that the GPU can tell.
# SPDX-License-Identifier: Apache-2.0
set(kit_programs test_kernels_gpu bench_cuda_products fuseline_without_cpu fuseline_bench_without_cpu)
set_target_properties(fuseline_without_cpu fuseline_bench_without_cpu PROPERTIES EXCLUDE_FROM_ALL OFF)
set_target_properties(${kit_programs} PROPERTIES INSTALL_RPATH "$ORIGIN/../lib")
set_target_properties(fuseline_cuda PROPERTIES INSTALL_RPATH "$ORIGIN/..")
# A RUNPATH is for a program's own libraries only, a RPATH is for theirs, too.
foreach(program IN LISTS kit_programs)
  target_link_options(${program} PRIVATE -Wl,--disable-new-dtags)
endforeach()
install(TARGETS ${kit_programs} fuseline_cuda RUNTIME_DEPENDENCY_SET gpu_tests
  RUNTIME DESTINATION bin COMPONENT gpu-tests EXCLUDE_FROM_ALL
  LIBRARY DESTINATION lib/fuseline COMPONENT gpu-tests EXCLUDE_FROM_ALL)
# What comes with every system, and with the driver, stays out. The system's C++ library may be older than this one, which
# may need a newer C library than the system has.
install(RUNTIME_DEPENDENCY_SET gpu_tests
  PRE_EXCLUDE_REGEXES "^ld-linux" "^lib(c|m|dl|rt|pthread)\\.so" "^libstdc\\+\\+" "^libgcc_s" "^libcuda\\.so" "^libnvidia"
  DESTINATION lib COMPONENT gpu-tests EXCLUDE_FROM_ALL)
install(PROGRAMS ${CMAKE_CURRENT_LIST_DIR}/run DESTINATION . COMPONENT gpu-tests EXCLUDE_FROM_ALL)
install(DIRECTORY ${CMAKE_CURRENT_LIST_DIR}/record DESTINATION share/fuseline COMPONENT gpu-tests
        EXCLUDE_FROM_ALL PATTERN __pycache__ EXCLUDE)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/resources/examples DESTINATION share/fuseline COMPONENT gpu-tests
        EXCLUDE_FROM_ALL PATTERN runs EXCLUDE)
install(PROGRAMS ${PROJECT_SOURCE_DIR}/tests/bench/peer_torch.py DESTINATION share/fuseline/bench COMPONENT gpu-tests
        EXCLUDE_FROM_ALL)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/tests/bench/peer DESTINATION share/fuseline/bench COMPONENT gpu-tests
        EXCLUDE_FROM_ALL PATTERN __pycache__ EXCLUDE)

# Elementwise programs of what is recorded, with its sizes, compiled beforehand for the GPUs of the module: a run need not
# wait for NVRTC, nor have it. Only the archive for machines with GPUs has them.
set(cuda_folder ${PROJECT_SOURCE_DIR}/kernels/cuda)
add_executable(fill_programs EXCLUDE_FROM_ALL ${CMAKE_CURRENT_LIST_DIR}/fill_programs.cpp
               ${cuda_folder}/elementwise/nvrtc_cubin.cpp ${cuda_folder}/support/shared_library.cpp)
fuseline_target(fill_programs)
target_link_libraries(fill_programs PRIVATE fuseline_simt fuseline_cuda_headers ${CMAKE_DL_LIBS})
set(program_targets ${CMAKE_CUDA_ARCHITECTURES})
list(FILTER program_targets EXCLUDE REGEX "-virtual$")
list(TRANSFORM program_targets REPLACE "-real$" "")
list(TRANSFORM program_targets PREPEND sm_)
set(examples ${PROJECT_SOURCE_DIR}/resources/examples)
set(programs ${PROJECT_BINARY_DIR}/gpu_programs)
add_custom_target(gpu_programs
  COMMAND fill_programs ${programs} ${program_targets}
          ${examples}/llama_mlp.fuseline M=2048 H=4096 F=14336
          ${examples}/llama_layer.fuseline S=2048 B=1 H=4096 D=128 G=8 F=14336
          ${examples}/gpt_layer.fuseline S=2048 B=1 H=2048 D=128 F=8192
          ${CMAKE_CURRENT_LIST_DIR}/record/attention.fuseline S=2048 B=2 G=8
          ${CMAKE_CURRENT_LIST_DIR}/record/head.fuseline M=2048 H=4096 V=32768
  COMMENT "Compiling elementwise programs beforehand" VERBATIM)
install(DIRECTORY ${programs}/ DESTINATION lib/fuseline/programs COMPONENT gpu-tests EXCLUDE_FROM_ALL OPTIONAL)

# pack_kit(<variable> <archive> [-DFAST=ON]): the command that makes the archive.
function(pack_kit variable archive)
  set(${variable} ${CMAKE_COMMAND} -DBUILD=${PROJECT_BINARY_DIR} -DARCHIVE=${archive} ${ARGN}
      -P ${PROJECT_SOURCE_DIR}/tests/kernels/gpu/pack_kit.cmake PARENT_SCOPE)
endfunction()
pack_kit(pack ${PROJECT_BINARY_DIR}/gpu_kit.tar.xz)
add_custom_target(gpu_kit COMMAND ${pack} DEPENDS ${kit_programs} fuseline_cuda COMMENT "Packing gpu_kit.tar.xz" VERBATIM)
add_dependencies(gpu_kit gpu_programs)

set(tested_kit ${CMAKE_CURRENT_BINARY_DIR}/tested_kit.tar.xz)
pack_kit(pack ${tested_kit} -DFAST=ON)
add_test(NAME gpu.pack COMMAND ${pack})
# It works where it is unpacked, with nothing of this machine's environment.
add_test(NAME gpu.install COMMAND ${CMAKE_COMMAND} -DARCHIVE=${tested_kit} -DFOLDER=${CMAKE_CURRENT_BINARY_DIR}/unpacked_kit
         -P ${CMAKE_CURRENT_LIST_DIR}/check_install.cmake)
# What --record runs, and makes of it: with other programs in the place of those that measure, and with the real ones on the
# GPU of host memory.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_test(NAME gpu.record COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_LIST_DIR}/test_record.py)
add_test(NAME gpu.kit_on_host_gpu COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_LIST_DIR}/check_kit.py ${tested_kit}
         $<TARGET_FILE:fuseline_cuda_on_host>)
set_tests_properties(gpu.pack PROPERTIES FIXTURES_SETUP gpu_kit)
set_tests_properties(gpu.install gpu.kit_on_host_gpu PROPERTIES FIXTURES_REQUIRED gpu_kit)
# It keeps to a budget of time, which tests beside it would use up.
set_tests_properties(gpu.kit_on_host_gpu PROPERTIES RUN_SERIAL ON)
set_tests_properties(gpu.pack gpu.install gpu.record gpu.kit_on_host_gpu PROPERTIES LABELS kernels)
