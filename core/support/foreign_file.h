// Identifies files of other programs by their first bytes, and explains their use here.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace fuseline {

/// "This is a safetensors file: weights without the ops that use them. Give them to ...". `bytes`: the beginning of the
/// file, or all of it. Nothing: it may be a file of Fuseline, or is not known.
std::optional<std::string> foreignFileText(std::string_view bytes);
/// The same for a file. Nothing also if it cannot be read, or cannot be read twice, such as a pipe.
std::optional<std::string> foreignFileText(const std::filesystem::path& path);

/// Does it begin as the message of an ONNX model does?
bool looksLikeOnnx(std::string_view bytes);

}  // namespace fuseline
