// JSON with a checksum an entry: a flipped digit must not become another algorithm.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/algorithm_cache.h"

#include "core/support/hash.h"
#include "core/support/json_fields.h"
#include "core/tensor/scaling.h"
#include "kernels/cuda/support/kept_file.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <utility>

#include <fmt/format.h>

namespace fuseline::cuda {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFormat = "fuseline algorithms";
/// Raise it also when a guarantee to the library changes, such as the alignment of pointers.
constexpr std::int64_t kVersion = 2;

std::string factorText(Storage2d storage, const std::optional<FactorCodes>& codes, DType dtype) {
  const std::string type = codes ? fmt::format("{} {}", formatName(codes->format), traitsOf(codes->scaling).name)
                                 : std::string(dtypeName(dtype));
  return type + (storage == Storage2d::Transposed ? " transposed" : "");
}

std::string hexOf(const std::array<std::byte, 64>& bytes) {
  std::string text;
  for (const std::byte byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned>(byte));
  return text;
}

std::optional<std::byte> byteOf(std::string_view twoDigits) {
  unsigned value = 0;
  const char* const end = twoDigits.data() + twoDigits.size();
  const auto [stop, problem] = std::from_chars(twoDigits.data(), end, value, 16);
  return problem == std::errc() && stop == end ? std::optional(static_cast<std::byte>(value)) : std::nullopt;
}

std::optional<std::array<std::byte, 64>> bytesOf(std::string_view hex) {
  std::array<std::byte, 64> bytes{};
  if (hex.size() != 2 * bytes.size()) return std::nullopt;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const std::optional<std::byte> byte = byteOf(hex.substr(2 * i, 2));
    if (!byte) return std::nullopt;
    bytes[i] = *byte;
  }
  return bytes;
}

std::string textOf(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

Json toJson(const std::string& key, const KeptAlgorithm& kept) {
  Json json = {{"problem", key},
               {"algorithm", hexOf(kept.algorithm)},
               {"candidate", kept.candidate},
               {"workspaceBytes", kept.workspaceBytes},
               {"medianNs", kept.medianNs},
               {"firstMedianNs", kept.firstMedianNs},
               {"numCandidates", kept.numCandidates}};
  json["checksum"] = fmt::format("{:016x}", fnv1a64(textOf(json)));
  return json;
}

/// An entry is intact if writing it again gives the same JSON, including its checksum.
void readEntry(const Json& json, KeptAlgorithms& algorithms) {
  std::string key;
  std::string hex;
  KeptAlgorithm kept;
  JsonFields fields(json, {});
  fields.read("problem", key);
  fields.read("algorithm", hex);
  fields.read("candidate", kept.candidate);
  fields.read("workspaceBytes", kept.workspaceBytes);
  fields.read("medianNs", kept.medianNs);
  fields.read("firstMedianNs", kept.firstMedianNs);
  fields.read("numCandidates", kept.numCandidates);
  const auto bytes = bytesOf(hex);
  if (fields.error() || !bytes) return;
  kept.algorithm = *bytes;
  if (toJson(key, kept) == json) algorithms.insert_or_assign(key, kept);
}

Json headOf(const AlgorithmOrigin& origin) {
  return {{"format", kFormat},
          {"version", kVersion},
          {"device", origin.device},
          {"driver", origin.driver},
          {"library", origin.library}};
}

bool isOf(const AlgorithmOrigin& origin, const Json& file) {
  AlgorithmOrigin read;
  std::string format;
  std::int64_t version = 0;
  JsonFields fields(file, {});
  fields.read("format", format);
  fields.read("version", version);
  fields.read("device", read.device);
  fields.read("driver", read.driver);
  fields.read("library", read.library);
  return !fields.error() && format == kFormat && version == kVersion && read == origin;
}

/// Letters, digits, and characters without a meaning in any shell or file system.
std::string safeName(std::string text) {
  const auto isSafe = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '-';
  };
  std::ranges::replace_if(text, std::not_fn(isSafe), '_');
  return text;
}

}  // namespace

std::string problemKey(const GemmProblem& problem, std::uint64_t maxWorkspaceBytes) {
  const std::string a = factorText(problem.a, problem.aCodes, problem.factorType);
  const std::string b = factorText(problem.b, problem.bCodes, problem.factorType);
  std::string key =
      fmt::format("{} x {} x {}, {} by {} to {}", problem.m, problem.n, problem.k, a, b, dtypeName(problem.cType));
  if (problem.cFormat) key += fmt::format(" as {}", formatName(*problem.cFormat));
  if (problem.isFastAccumulated) key += ", fast accumulation";
  if (problem.isTf32) key += ", TF32";
  if (problem.alpha != 1.0F) key += ", scaled";
  if (problem.hasBias) key += ", bias";
  if (problem.hasAddend) key += ", addend";
  if (problem.activation != GemmActivation::None)
    key += problem.activation == GemmActivation::Gelu ? ", GELU" : ", ReLU";
  if (problem.hasPreActivation) key += ", pre-activation";
  if (problem.hasGeluGrad) key += ", gradient of GELU";
  if (problem.biasGradType) key += fmt::format(", bias gradient in {}", dtypeName(*problem.biasGradType));
  if (const GemmBatch& batch = problem.batch; batch != GemmBatch())
    key += fmt::format(", {} in rows of {}, {}, {}, {}, {}, {} apart", batch.count, batch.aRow, batch.bRow, batch.cRow,
                       batch.aStride, batch.bStride, batch.cStride);
  if (problem.alignmentBytes != GemmProblem().alignmentBytes)
    key += fmt::format(", aligned to {}", problem.alignmentBytes);
  return key + fmt::format(", workspace of {}", maxWorkspaceBytes);
}

fs::path algorithmFile(const fs::path& folder, const AlgorithmOrigin& origin) {
  constexpr std::size_t kLongest = 200;  // most file systems take 255 bytes
  const std::string name = fmt::format("{}_driver_{}_cublaslt_{}", origin.device, origin.driver, origin.library);
  return folder / (safeName(name).substr(0, kLongest) + ".json");
}

std::string formatAlgorithms(const AlgorithmOrigin& origin, const KeptAlgorithms& algorithms) {
  Json problems = Json::array();
  for (const auto& [key, kept] : algorithms) problems.push_back(toJson(key, kept));
  Json file = headOf(origin);
  file["problems"] = std::move(problems);
  return textOf(file, 1) + "\n";
}

KeptAlgorithms parseAlgorithms(const AlgorithmOrigin& origin, std::string_view text) {
  const Result<Json> file = parseJson(text);
  if (!file || !isOf(origin, *file)) return {};
  KeptAlgorithms algorithms;
  if (const auto problems = file->find("problems"); problems != file->end())
    for (const Json& entry : *problems) readEntry(entry, algorithms);
  return algorithms;
}

AlgorithmCache::AlgorithmCache(const fs::path& folder, AlgorithmOrigin origin)
    : m_origin(std::move(origin)), m_file(folder.empty() ? fs::path() : algorithmFile(folder, m_origin)) {
  if (!m_file.empty()) m_algorithms = parseAlgorithms(m_origin, readKept(m_file));
}

std::optional<KeptAlgorithm> AlgorithmCache::find(const std::string& key) const {
  const auto found = m_algorithms.find(key);
  return found == m_algorithms.end() ? std::nullopt : std::optional(found->second);
}

void AlgorithmCache::keep(const std::string& key, const KeptAlgorithm& algorithm) {
  m_algorithms.insert_or_assign(key, algorithm);
  m_hasNew = true;
}

void AlgorithmCache::save() {
  if (m_file.empty() || !std::exchange(m_hasNew, false)) return;
  m_algorithms.merge(parseAlgorithms(m_origin, readKept(m_file)));
  writeKept(m_file, formatAlgorithms(m_origin, m_algorithms));
}

void AlgorithmCache::drop(const std::string& key) { m_algorithms.erase(key); }

}  // namespace fuseline::cuda
