# Warnings, sanitizers and include paths that every target of the project shares.
# SPDX-License-Identifier: Apache-2.0

function(fuseline_target target)
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/generated)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion
                         # Aggregates are initialised by the fields that differ from their defaults.
                         -Wno-missing-field-initializers)
  if(FUSELINE_SANITIZE)
    target_compile_options(${target} PUBLIC -fsanitize=${FUSELINE_SANITIZE} -fno-omit-frame-pointer)
    target_link_options(${target} PUBLIC -fsanitize=${FUSELINE_SANITIZE})
  endif()
endfunction()
