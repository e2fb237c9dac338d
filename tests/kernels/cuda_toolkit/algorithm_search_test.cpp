// The search for algorithms in a library that has two: one with tiles and clusters, one with splits. Needs no GPU.
// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/cuda/algorithm_search.h"
#include "tests/kernels/cuda_toolkit/told_library.h"

#include <array>
#include <set>

#include <gtest/gtest.h>

namespace fuseline::cuda {
namespace {

using Configuration = std::array<std::uint64_t, 8>;

/// A number for each attribute of the configuration, and the algorithm's id.
std::uint64_t& valueOf(cublasLtMatmulAlgo_t& algorithm, cublasLtMatmulAlgoConfigAttributes_t attribute) {
  return algorithm.data[attribute % 8];
}

std::set<Configuration>& checked() {
  static std::set<Configuration> configurations;
  return configurations;
}

constexpr int kTiled = 1;
constexpr int kSplit = 2;
constexpr std::array<std::uint32_t, 3> kTiles = {15, 20, 31};
constexpr std::uint64_t kRefusedTile = 20;

cublasStatus_t answer(void* to, std::size_t sizeBytes, std::size_t* written, const void* value,
                      std::size_t valueBytes) {
  *written = valueBytes;
  if (sizeBytes == 0) return CUBLAS_STATUS_SUCCESS;
  std::memcpy(to, value, std::min(sizeBytes, valueBytes));
  return sizeBytes < valueBytes ? CUBLAS_STATUS_INVALID_VALUE : CUBLAS_STATUS_SUCCESS;
}

SearchFunctions twoAlgorithms() {
  SearchFunctions functions;
  functions.ids = [](cublasLtHandle_t, cublasComputeType_t, cudaDataType_t, cudaDataType_t, cudaDataType_t,
                     cudaDataType_t, cudaDataType_t, int, int* ids, int* found) {
    ids[0] = kTiled;
    ids[1] = kSplit;
    *found = 2;
    return CUBLAS_STATUS_SUCCESS;
  };
  functions.init = [](cublasLtHandle_t, cublasComputeType_t, cudaDataType_t, cudaDataType_t, cudaDataType_t,
                      cudaDataType_t, cudaDataType_t, int id, cublasLtMatmulAlgo_t* algorithm) {
    *algorithm = {};
    valueOf(*algorithm, CUBLASLT_ALGO_CONFIG_ID) = static_cast<std::uint64_t>(id);
    return CUBLAS_STATUS_SUCCESS;
  };
  functions.capability = [](const cublasLtMatmulAlgo_t* algorithm, cublasLtMatmulAlgoCapAttributes_t attribute,
                            void* to, std::size_t sizeBytes, std::size_t* written) {
    const bool isTiled = algorithm->data[CUBLASLT_ALGO_CONFIG_ID] == kTiled;
    const std::uint32_t one = 1;
    const std::uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_MASK;
    if (isTiled && attribute == CUBLASLT_ALGO_CAP_TILE_IDS)
      return answer(to, sizeBytes, written, kTiles.data(), sizeof(kTiles));
    if (isTiled && attribute == CUBLASLT_ALGO_CAP_CTA_SWIZZLING_SUPPORT)
      return answer(to, sizeBytes, written, &one, sizeof(one));
    if (!isTiled && attribute == CUBLASLT_ALGO_CAP_SPLITK_SUPPORT)
      return answer(to, sizeBytes, written, &one, sizeof(one));
    if (!isTiled && attribute == CUBLASLT_ALGO_CAP_REDUCTION_SCHEME_MASK)
      return answer(to, sizeBytes, written, &reductions, sizeof(reductions));
    return CUBLAS_STATUS_NOT_SUPPORTED;
  };
  functions.configure = [](cublasLtMatmulAlgo_t* algorithm, cublasLtMatmulAlgoConfigAttributes_t attribute,
                           const void* value, std::size_t sizeBytes) {
    const bool isCluster = attribute == CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID;
    EXPECT_EQ(sizeBytes, isCluster ? sizeof(std::uint16_t) : sizeof(std::uint32_t));
    // Its attribute's number is 8, and there are 8 elements: next to the id.
    std::uint64_t& place = algorithm->data[attribute % 8];
    std::uint64_t told = 0;
    std::memcpy(&told, value, sizeBytes);
    place = isCluster ? place % 1000 + 1000 * told : told;
    return CUBLAS_STATUS_SUCCESS;
  };
  return functions;
}

class AlgorithmSearch : public ::testing::Test {
 protected:
  AlgorithmSearch() { checked().clear(); }

  SearchResult search(std::uint64_t maxChecks) {
    CublasLt library = writingDown();
    library.checkAlgorithm = [](cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, const cublasLtMatmulAlgo_t* algorithm,
                                cublasLtMatmulHeuristicResult_t* result) {
      Configuration configuration;
      std::copy_n(algorithm->data, configuration.size(), configuration.begin());
      EXPECT_TRUE(checked().insert(configuration).second) << "the same twice";
      *result = {};
      return configuration[CUBLASLT_ALGO_CONFIG_TILE_ID] == kRefusedTile ? CUBLAS_STATUS_NOT_SUPPORTED
                                                                         : CUBLAS_STATUS_SUCCESS;
    };
    const CublasLtSession session(library, nullptr);
    const CublasLtProduct product(session, {.m = 64, .n = 64, .k = 64});
    return searchAlgorithms(product, twoAlgorithms(), maxChecks);
  }
};

constexpr std::uint64_t kClusterShapes = 9;
constexpr std::uint64_t kSplits = 6;
constexpr std::uint64_t kTiledOnes = kTiles.size() * 2 * kClusterShapes;  // with and without swizzling
constexpr std::uint64_t kSplitOnes = kSplits * kClusterShapes;

TEST_F(AlgorithmSearch, ChecksEveryConfigurationOnce) {
  const SearchResult result = search(1'000'000);
  EXPECT_EQ(result.numConfigurations, kTiledOnes + kSplitOnes);
  EXPECT_EQ(result.numChecked, result.numConfigurations);
  EXPECT_EQ(checked().size(), result.numConfigurations);
  EXPECT_EQ(result.accepted.size(), kTiledOnes / 3 * 2 + kSplitOnes);
}

/// Partial sums are added up in float32, as the backend has it.
TEST_F(AlgorithmSearch, AddsSplitsUpInTheComputeType) {
  search(1'000'000);
  for (const Configuration& each : checked())
    EXPECT_EQ(each[CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME], each[CUBLASLT_ALGO_CONFIG_SPLITK_NUM] > 1
                                                               ? CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE
                                                               : CUBLASLT_REDUCTION_SCHEME_NONE);
}

TEST_F(AlgorithmSearch, SpreadsWhatItChecksOverAll) {
  const SearchResult result = search(40);
  EXPECT_EQ(result.numChecked, 40u);
  std::set<std::uint64_t> ids;
  std::set<std::uint64_t> tiles;
  for (const Configuration& each : checked()) {
    ids.insert(each[CUBLASLT_ALGO_CONFIG_ID] % 1000);
    tiles.insert(each[CUBLASLT_ALGO_CONFIG_TILE_ID]);
  }
  EXPECT_EQ(ids.size(), 2u);
  EXPECT_EQ(tiles.size(), kTiles.size() + 1);
}

/// Looking functions up needs no GPU.
TEST(CublasLt, HasTheFunctionsOfASearch) {
  const Result<SearchFunctions> functions = loadSearchFunctions();
  if (!functions) GTEST_SKIP() << functions.error().message;
  EXPECT_TRUE(functions->ids && functions->init && functions->capability && functions->configure);
}

}  // namespace
}  // namespace fuseline::cuda
