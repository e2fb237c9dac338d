// Words of ssh and of the other machine as sentences with the next step.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace fuseline::remote {

/// ssh never reached the other machine's shell. words: of its standard error.
std::string connectionProblem(std::string_view host, std::string_view words);
/// A file could not be written there.
std::string writingProblem(std::string_view host, std::string_view words);
/// The program does not start there.
std::string unfitProblem(std::string_view host, std::string_view words);

}  // namespace fuseline::remote
