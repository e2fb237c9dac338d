# Packs the kit of a build into one archive, with a folder gpu_kit in it.
# SPDX-License-Identifier: Apache-2.0
# cmake -DBUILD=FOLDER -DARCHIVE=FILE.tar.xz [-DFAST=ON] -P pack_kit.cmake
set(most_bytes 33554432)  # 32 MiB: what takes it to a machine may take no more
set(scratch ${ARCHIVE}.folder)
file(REMOVE_RECURSE ${scratch})
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --strip --component gpu-tests --prefix ${scratch}/gpu_kit
  OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
if(FAST)
  set(level "COMPRESSION_LEVEL 1")  # a fifth of the time for a quarter more bytes
endif()
file(WRITE ${scratch}/pack.cmake "file(ARCHIVE_CREATE OUTPUT ${ARCHIVE} PATHS gpu_kit FORMAT gnutar COMPRESSION XZ ${level})")
execute_process(COMMAND ${CMAKE_COMMAND} -P pack.cmake WORKING_DIRECTORY ${scratch} COMMAND_ERROR_IS_FATAL ANY)
file(REMOVE_RECURSE ${scratch})
file(SIZE ${ARCHIVE} bytes)
if(bytes GREATER most_bytes)
  message(FATAL_ERROR "${ARCHIVE}: expected at most ${most_bytes} bytes, found ${bytes}.")
endif()
message(STATUS "${ARCHIVE}: ${bytes} bytes")
