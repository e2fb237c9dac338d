// The chosen GEMM algorithms, kept in a file for the next run. Nothing here fails: an unreadable file counts as
// missing, and a file that cannot be written stays unchanged.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/gemm/gemm.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace fuseline::cuda {

/// Algorithms mean something to one version of the library only, and are the fastest on one device only.
struct AlgorithmOrigin {
  std::string device;
  std::string driver;   // a release: "580.65.06"
  std::string library;  // a version
  bool operator==(const AlgorithmOrigin&) const = default;
};

struct KeptAlgorithm {
  std::array<std::byte, 64> algorithm{};  // a cublasLtMatmulAlgo_t; zeros if the candidate's number is sufficient
  std::int64_t candidate = 0;             // number of the candidate
  std::uint64_t workspaceBytes = 0;
  double medianNs = 0.0;
  double firstMedianNs = 0.0;  // of the library's own first choice, measured in the same run; 0: it failed
  std::int64_t numCandidates = 0;
  bool operator==(const KeptAlgorithm&) const = default;
};

/// By the text of the problem.
using KeptAlgorithms = std::map<std::string, KeptAlgorithm>;

/// All that the choice depends on, as a text.
std::string problemKey(const GemmProblem& problem, std::uint64_t maxWorkspaceBytes);

/// One file an origin.
std::filesystem::path algorithmFile(const std::filesystem::path& folder, const AlgorithmOrigin& origin);

/// The text of a file, and the entries of a text: its intact ones, or none if it is no such file or of another origin.
std::string formatAlgorithms(const AlgorithmOrigin& origin, const KeptAlgorithms& algorithms);
KeptAlgorithms parseAlgorithms(const AlgorithmOrigin& origin, std::string_view text);

/// For one thread at a time. Several processes may share a file: each replaces it as a whole, with the entries found
/// there and its new ones. If two write at the same moment, one may lose its new entries, which are then measured
/// again.
class AlgorithmCache {
 public:
  /// An empty folder: nothing outlives the process.
  AlgorithmCache(const std::filesystem::path& folder, AlgorithmOrigin origin);
  /// Saves: a plan has many problems, whose algorithms are written together.
  ~AlgorithmCache() { save(); }
  AlgorithmCache(const AlgorithmCache&) = delete;
  AlgorithmCache& operator=(const AlgorithmCache&) = delete;

  std::optional<KeptAlgorithm> find(const std::string& key) const;
  void keep(const std::string& key, const KeptAlgorithm& algorithm);
  /// Writes the file if something was kept since, and creates its folder.
  void save();
  /// Until something is kept for it again.
  void drop(const std::string& key);

 private:
  AlgorithmOrigin m_origin;
  std::filesystem::path m_file;  // empty: none
  KeptAlgorithms m_algorithms;
  bool m_hasNew = false;
};

}  // namespace fuseline::cuda
