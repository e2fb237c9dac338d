// Compiles generated elementwise code, and launches it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/support/result.h"
#include "kernels/cuda/elementwise/elementwise_launch.h"
#include "kernels/cuda/stream/stream.h"

#include <memory>
#include <string>

namespace fuseline::cuda {

class CompiledProgram {
 public:
  virtual ~CompiledProgram() = default;
  /// Blocks of the program without dynamic shared memory that a multiprocessor runs at once.
  virtual int blocksAtOnce() const = 0;
  virtual void launch(const device::Arguments& arguments, const ElementwiseShape& shape, float* columnParts,
                      float* rowParts, Stream stream) const = 0;
};

class ProgramCompiler {
 public:
  virtual ~ProgramCompiler() = default;
  /// Equal sources are compiled once. Errors: there is no compiler, or it refuses; such programs are interpreted.
  virtual Result<std::shared_ptr<const CompiledProgram>> compile(const std::string& source) = 0;
};

}  // namespace fuseline::cuda
