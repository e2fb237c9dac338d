// A table of signatures. Sources: the formats' own specifications.
// SPDX-License-Identifier: Apache-2.0
#include "core/support/foreign_file.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <system_error>

#include <fmt/format.h>

namespace fuseline {

namespace {

constexpr std::size_t kHeadBytes = std::size_t{1} << 16U;

constexpr std::string_view kFromModel = "Export the model with torch.onnx.export, then `fuseline import MODEL.onnx`.";
constexpr std::string_view kUnpack = "Unpack it first.";
constexpr std::string_view kFromOwn =
    "Pipelines are *.fuseline files, or files of `fuseline export --to te`, svg or onnx.";

struct Kind {
  bool (*is)(std::string_view);
  std::string_view what;
  std::string_view advice;
};

bool begins(std::string_view bytes, std::string_view signature, std::size_t at = 0) {
  return bytes.size() >= at + signature.size() && bytes.substr(at, signature.size()) == signature;
}

bool holds(std::string_view bytes, std::string_view text) { return bytes.find(text) != std::string_view::npos; }

/// Eight bytes of length, little endian, then a JSON object of that length.
bool isSafetensors(std::string_view bytes) {
  if (bytes.size() < 9 || bytes[8] != '{') return false;
  std::uint64_t length = 0;
  for (std::size_t i = 8; i-- > 0;) length = length << 8U | static_cast<unsigned char>(bytes[i]);
  return length >= 2 && length < (std::uint64_t{1} << 32U);
}

bool isZip(std::string_view bytes) {
  return begins(bytes, std::string_view("PK\x03\x04", 4)) || begins(bytes, std::string_view("PK\x05\x06", 4));
}
bool isTorchZip(std::string_view bytes) { return isZip(bytes) && holds(bytes, "data.pkl"); }
bool isNpz(std::string_view bytes) { return isZip(bytes) && holds(bytes, ".npy"); }

/// Protocols 2 to 5.
bool isPickle(std::string_view bytes) {
  return bytes.size() > 2 && bytes[0] == '\x80' && bytes[1] >= 2 && bytes[1] <= 5;
}

bool isArchive(std::string_view bytes) {
  return isZip(bytes) || begins(bytes, "\x1f\x8b") || begins(bytes, "BZh") ||
         begins(bytes,
                "\xfd"
                "7zXZ") ||
         begins(bytes, "\x28\xb5\x2f\xfd") || begins(bytes, "7z\xbc\xaf") || begins(bytes, "ustar", 257);
}

bool isPicture(std::string_view bytes) {
  return begins(bytes, "\xff\xd8\xff") || begins(bytes, "GIF8") || begins(bytes, "WEBP", 8) || begins(bytes, "II*") ||
         begins(bytes, "MM\0*") || begins(bytes, "%PDF-");
}

bool isProgram(std::string_view bytes) {
  return begins(bytes,
                "\x7f"
                "ELF") ||
         begins(bytes, "MZ\x90");
}

/// A JSON object that does not say that it is of Fuseline.
bool isOtherJson(std::string_view bytes) {
  const std::size_t first = bytes.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || (bytes[first] != '{' && bytes[first] != '[')) return false;
  return !holds(bytes, "\"format\"") && !holds(bytes, "\"pipeline\"");
}
bool isModelConfig(std::string_view bytes) {
  return isOtherJson(bytes) && (holds(bytes, "\"model_type\"") || holds(bytes, "\"architectures\""));
}
bool isShardIndex(std::string_view bytes) { return isOtherJson(bytes) && holds(bytes, "\"weight_map\""); }
bool isTrace(std::string_view bytes) { return isOtherJson(bytes) && holds(bytes, "\"traceEvents\""); }

constexpr std::array kKinds = {
    Kind{[](std::string_view bytes) { return bytes.empty(); }, "an empty file", kFromOwn},
    Kind{isSafetensors, "a safetensors file: weights without the ops that use them",
         "Use it for a run: `fuseline run PIPELINE.fuseline --tensors FILE`."},
    Kind{isTorchZip, "a PyTorch checkpoint: weights, perhaps with Python objects, but no graph", kFromModel},
    Kind{isNpz, "an archive of NumPy arrays", "Tensors are read from *.safetensors files, with --tensors."},
    Kind{isPickle, "a Python pickle, such as an older PyTorch checkpoint", kFromModel},
    Kind{[](std::string_view bytes) { return begins(bytes, "GGUF"); },
         "a GGUF file: weights of a llama.cpp model without its graph", kFromModel},
    Kind{[](std::string_view bytes) { return begins(bytes, "\x93NUMPY"); }, "a NumPy array",
         "Tensors are read from *.safetensors files, with --tensors."},
    Kind{[](std::string_view bytes) { return begins(bytes, "\x89HDF\r\n"); },
         "an HDF5 file, such as the weights of a Keras model", kFromModel},
    Kind{[](std::string_view bytes) { return begins(bytes, "TFL3", 4); }, "a TensorFlow Lite model", kFromModel},
    Kind{isArchive, "a compressed file or an archive", kUnpack},
    Kind{isPicture, "a picture or a document without a pipeline", kFromOwn},
    Kind{isProgram, "a program", kFromOwn},
    Kind{looksLikeOnnx, "an ONNX model, by its contents", "Rename it to *.onnx to import it."},
    Kind{isModelConfig, "the configuration of a Hugging Face model",
         "Import it as a pipeline: `fuseline import config.json -o model.fuseline`."},
    Kind{isShardIndex, "the index of weights in several files", kFromModel},
    Kind{isTrace, "a trace of times",
         "Open it in Perfetto; `fuseline export RUN.fuserun --to trace` writes such files."},
};

}  // namespace

/// A ModelProto begins with its ir_version, field 1, and the producer's name or the graph come next.
bool looksLikeOnnx(std::string_view bytes) {
  if (bytes.size() < 4 || bytes[0] != '\x08' || bytes[1] < 3 || bytes[1] > 32) return false;
  return bytes[2] == '\x12' || bytes[2] == '\x1a' || bytes[2] == ':' || bytes[2] == 'B';
}

std::optional<std::string> foreignFileText(std::string_view bytes) {
  const std::string_view head = bytes.substr(0, kHeadBytes);
  const auto kind = std::ranges::find_if(kKinds, [&](const Kind& each) { return each.is(head); });
  if (kind == kKinds.end()) return std::nullopt;
  return fmt::format("This is {}. {}", kind->what, kind->advice);
}

std::optional<std::string> foreignFileText(const std::filesystem::path& path) {
  std::error_code code;
  if (!std::filesystem::is_regular_file(path, code)) return std::nullopt;
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::string head(kHeadBytes, '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(file.gcount()));
  return foreignFileText(std::string_view(head));
}

}  // namespace fuseline
