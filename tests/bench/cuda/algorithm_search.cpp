// Algorithms by id, and a number for each of their configurations.
// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/cuda/algorithm_search.h"

#include "kernels/cuda/support/shared_library.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace fuseline::cuda {

namespace {

constexpr int kMaxIds = 512;
constexpr std::array kSplits = {1u, 2u, 3u, 4u, 6u, 8u};
constexpr std::array<std::uint32_t, 9> kClusters = {
    CUBLASLT_CLUSTER_SHAPE_AUTO,  CUBLASLT_CLUSTER_SHAPE_1x1x1, CUBLASLT_CLUSTER_SHAPE_2x1x1,
    CUBLASLT_CLUSTER_SHAPE_1x2x1, CUBLASLT_CLUSTER_SHAPE_2x2x1, CUBLASLT_CLUSTER_SHAPE_4x1x1,
    CUBLASLT_CLUSTER_SHAPE_1x4x1, CUBLASLT_CLUSTER_SHAPE_4x2x1, CUBLASLT_CLUSTER_SHAPE_2x4x1};
/// A prime, and no factor of a number of configurations: its multiples visit all of them, neighbors far apart.
constexpr std::uint64_t kStride = 2'654'435'761;

using Values = std::vector<std::uint32_t>;

/// An attribute and the values that it is tried with.
struct Axis {
  cublasLtMatmulAlgoConfigAttributes_t attribute;
  Values values;
};

/// An algorithm and all that can be said of it.
struct Space {
  cublasLtMatmulAlgo_t algorithm{};
  std::vector<Axis> axes;

  std::uint64_t size() const {
    std::uint64_t size = 1;
    for (const Axis& axis : axes) size *= axis.values.size();
    return size;
  }
};

class Searcher {
 public:
  Searcher(const CublasLtProduct& product, const SearchFunctions& functions)
      : m_product(product), m_functions(functions) {}

  std::vector<Space> spaces() const {
    const CublasLtTerms& terms = m_product.terms();
    std::array<int, kMaxIds> ids{};
    int found = 0;
    const cublasStatus_t status = m_functions.ids(m_product.session().handle(), terms.compute, CUDA_R_32F, terms.aType,
                                                  terms.bType, terms.cType, terms.dType, kMaxIds, ids.data(), &found);
    if (status != CUBLAS_STATUS_SUCCESS) return {};
    std::vector<Space> spaces;
    for (int i = 0; i < found; ++i)
      if (const auto space = spaceOf(ids[static_cast<std::size_t>(i)])) spaces.push_back(*space);
    return spaces;
  }

  /// number: below the size of the space.
  std::optional<CublasLtCandidate> accepted(const Space& space, std::uint64_t number) const {
    cublasLtMatmulAlgo_t algorithm = space.algorithm;
    for (const Axis& axis : space.axes) {
      if (!configure(algorithm, axis.attribute, axis.values[number % axis.values.size()])) return std::nullopt;
      number /= axis.values.size();
    }
    return m_product.accept(algorithm);
  }

 private:
  std::optional<Space> spaceOf(int id) const {
    const CublasLtTerms& terms = m_product.terms();
    Space space;
    if (m_functions.init(m_product.session().handle(), terms.compute, CUDA_R_32F, terms.aType, terms.bType, terms.cType,
                         terms.dType, id, &space.algorithm) != CUBLAS_STATUS_SUCCESS)
      return std::nullopt;
    const cublasLtMatmulAlgo_t& algorithm = space.algorithm;
    const bool canSplit =
        number(algorithm, CUBLASLT_ALGO_CAP_SPLITK_SUPPORT) != 0 &&
        (number(algorithm, CUBLASLT_ALGO_CAP_REDUCTION_SCHEME_MASK) & CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE) != 0;
    space.axes = {
        {CUBLASLT_ALGO_CONFIG_TILE_ID, list(algorithm, CUBLASLT_ALGO_CAP_TILE_IDS)},
        {CUBLASLT_ALGO_CONFIG_STAGES_ID, list(algorithm, CUBLASLT_ALGO_CAP_STAGES_IDS)},
        {CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, upTo(number(algorithm, CUBLASLT_ALGO_CAP_CUSTOM_OPTION_MAX))},
        {CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, upTo(number(algorithm, CUBLASLT_ALGO_CAP_CTA_SWIZZLING_SUPPORT) & 1u)},
        {CUBLASLT_ALGO_CONFIG_SPLITK_NUM, canSplit ? Values(kSplits.begin(), kSplits.end()) : Values{1}},
        {CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, Values(kClusters.begin(), kClusters.end())}};
    return space;
  }

  static Values upTo(std::uint32_t last) {
    Values values;
    for (std::uint32_t value = 0; value <= last; ++value) values.push_back(value);
    return values;
  }

  /// 0 where the library does not say.
  std::uint32_t number(const cublasLtMatmulAlgo_t& algorithm, cublasLtMatmulAlgoCapAttributes_t attribute) const {
    std::uint32_t value = 0;
    std::size_t written = 0;
    const cublasStatus_t status = m_functions.capability(&algorithm, attribute, &value, sizeof(value), &written);
    return status == CUBLAS_STATUS_SUCCESS ? value : 0;
  }

  /// 0, which means "undefined", where the library names none.
  Values list(const cublasLtMatmulAlgo_t& algorithm, cublasLtMatmulAlgoCapAttributes_t attribute) const {
    std::size_t sizeBytes = 0;
    if (m_functions.capability(&algorithm, attribute, nullptr, 0, &sizeBytes) != CUBLAS_STATUS_SUCCESS) return {0};
    Values values(sizeBytes / sizeof(std::uint32_t));
    if (values.empty()) return {0};
    const cublasStatus_t status = m_functions.capability(&algorithm, attribute, values.data(), sizeBytes, &sizeBytes);
    return status == CUBLAS_STATUS_SUCCESS ? values : Values{0};
  }

  bool configure(cublasLtMatmulAlgo_t& algorithm, cublasLtMatmulAlgoConfigAttributes_t attribute,
                 std::uint32_t value) const {
    if (attribute == CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID)
      return set(algorithm, attribute, static_cast<std::uint16_t>(value));
    if (attribute == CUBLASLT_ALGO_CONFIG_SPLITK_NUM &&
        !set(algorithm, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME,
             value > 1 ? CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE : CUBLASLT_REDUCTION_SCHEME_NONE))
      return false;
    return set(algorithm, attribute, value);
  }

  template <class T>
  bool set(cublasLtMatmulAlgo_t& algorithm, cublasLtMatmulAlgoConfigAttributes_t attribute, T value) const {
    return m_functions.configure(&algorithm, attribute, &value, sizeof(value)) == CUBLAS_STATUS_SUCCESS;
  }

  const CublasLtProduct& m_product;
  const SearchFunctions& m_functions;
};

void bind(Symbols& symbols, SearchFunctions& found) {
  symbols.find(found.ids, "cublasLtMatmulAlgoGetIds");
  symbols.find(found.init, "cublasLtMatmulAlgoInit");
  symbols.find(found.capability, "cublasLtMatmulAlgoCapGetAttribute");
  symbols.find(found.configure, "cublasLtMatmulAlgoConfigSetAttribute");
}

}  // namespace

Result<SearchFunctions> loadSearchFunctions() {
  return loadFunctions<SearchFunctions>("libcublasLt.so", CUBLAS_VER_MAJOR, bind);
}

SearchResult searchAlgorithms(const CublasLtProduct& product, const SearchFunctions& functions,
                              std::uint64_t maxChecks) {
  const Searcher searcher(product, functions);
  const std::vector<Space> spaces = searcher.spaces();
  SearchResult result;
  for (const Space& space : spaces) result.numConfigurations += space.size();
  result.numChecked = std::min(result.numConfigurations, maxChecks);
  for (std::uint64_t i = 0; i < result.numChecked; ++i) {
    std::uint64_t number = i * kStride % result.numConfigurations;
    auto space = spaces.begin();
    while (number >= space->size()) number -= (space++)->size();
    if (const auto candidate = searcher.accepted(*space, number)) result.accepted.push_back(*candidate);
  }
  return result;
}

}  // namespace fuseline::cuda
