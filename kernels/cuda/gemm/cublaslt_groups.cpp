// The tables of a grouped GEMM, and the names of the header that has them.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/cublaslt_groups.h"

#include "kernels/cuda/gemm/cublaslt_operation.h"
#include "kernels/cuda/gemm/cublaslt_product.h"
#include "kernels/cuda/memory/word_launch.h"
#include "kernels/cuda/stream/launch_count.h"
#include "kernels/cuda/support/check.h"
#include "kernels/cuda/support/workspace.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace fuseline::cuda {

namespace {

// Names of cublasLt.h 13.4, which the oldest supported header does not have.
constexpr auto kScaleOfGroup = static_cast<cublasLtMatmulMatrixScale_t>(6);  // ..._SCALE_PER_BATCH_SCALAR_32F
constexpr auto kAverageSum = static_cast<cublasLtMatmulPreferenceAttributes_t>(13);
constexpr auto kAverageRows = static_cast<cublasLtMatmulPreferenceAttributes_t>(14);
constexpr auto kAverageCols = static_cast<cublasLtMatmulPreferenceAttributes_t>(15);

/// The first with bf16, and those with scales of a tensor and of blocks, which TransformerEngine demands.
constexpr std::size_t kOldest = 130300;
constexpr std::size_t kOldestWithBlocks = 130400;

/// Matrices and their columns begin at multiples of it, in bytes.
constexpr std::int64_t kGroupAlignment = 16;

std::int64_t bitsOf(cudaDataType_t type) {
  switch (type) {
    case CUDA_R_32F: return 32;
    case CUDA_R_16F:
    case CUDA_R_16BF: return 16;
    case CUDA_R_4F_E2M1: return 4;
    default: return 8;
  }
}

bool isAligned(const ColumnMajor& matrix, cudaDataType_t type) {
  return matrix.leadingDimension * bitsOf(type) / 8 % kGroupAlignment == 0;
}

bool isAligned(const CublasLtTerms& terms) {
  return isAligned(terms.layout.a, terms.aType) && isAligned(terms.layout.b, terms.bType) &&
         isAligned(terms.layout.d, terms.dType);
}

GemmProblem withRows(GemmProblem problem, GroupExtent extent, std::int64_t rows) {
  problem.*extent = rows;
  return problem;
}

/// One scale for each group's tensor; alpha and beta on the device, the same for all groups.
CublasLtTerms groupedTerms(const GemmProblem& problem) {
  CublasLtTerms terms = termsOf(problem);
  terms.pointerMode = CUBLASLT_POINTER_MODE_DEVICE;
  for (std::optional<cublasLtMatmulMatrixScale_t>* const mode : {&terms.aScaleMode, &terms.bScaleMode})
    if (*mode == CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F) *mode = kScaleOfGroup;
  return terms;
}

/// Limits that are known without asking the library.
Verdict canBeGrouped(const GemmProblem& problem, std::size_t version) {
  if (version < kOldest) return Verdict::no("it has no grouped GEMM before 13.3");
  const bool hasBlocks = problem.aCodes && problem.aCodes->scaling != Scaling::PerTensor;
  if (hasBlocks && version < kOldestWithBlocks)
    return Verdict::no("its grouped GEMMs have no block scales before 13.4");
  if (termsOf(problem).epilogue != CUBLASLT_EPILOGUE_DEFAULT || problem.cFormat)
    return Verdict::no("its grouped GEMMs have no epilogue");
  if (isScaledOnDevice(problem) || problem.factorType == DType::F32)
    return Verdict::no("it groups no GEMMs of float32 or NVFP4");
  if (problem.alignmentBytes % kGroupAlignment != 0)
    return Verdict::no("groups begin at addresses that are no multiples of 16");
  return Verdict::yes();
}

/// Arrays of a table, one after the other, each at a multiple of 8 bytes.
class Table {
 public:
  /// Offset of the array in bytes.
  std::size_t addInts(const std::vector<std::int32_t>& values) {
    const std::size_t at = sizeBytes();
    for (std::size_t i = 0; i < values.size(); i += 2) {
      const std::uint32_t high = i + 1 < values.size() ? static_cast<std::uint32_t>(values[i + 1]) : 0;
      m_words.push_back(std::uint64_t{high} << 32U | static_cast<std::uint32_t>(values[i]));
    }
    return at;
  }
  std::size_t addPointers(const std::vector<const void*>& pointers) {
    const std::size_t at = sizeBytes();
    for (const void* const pointer : pointers) m_words.push_back(reinterpret_cast<std::uintptr_t>(pointer));
    return at;
  }
  std::size_t addFloats(float first, float second) {
    return addInts({std::bit_cast<std::int32_t>(first), std::bit_cast<std::int32_t>(second)});
  }
  std::size_t sizeBytes() const { return m_words.size() * sizeof(std::uint64_t); }
  const std::vector<std::uint64_t>& words() const { return m_words; }

 private:
  std::vector<std::uint64_t> m_words;
};

/// Where the extents of a matrix are in the table.
struct ExtentTable {
  std::size_t rows = 0, cols = 0, leadingDimensions = 0;
};

class CublasLtGroups final : public GroupedGemm {
 public:
  CublasLtGroups(const CublasLtSession& session, const GemmProblem& problem, GroupExtent extent, std::size_t numGroups)
      : m_session(session),
        m_problem(problem),
        m_extent(extent),
        m_numGroups(numGroups),
        m_terms(groupedTerms(problem)),
        m_operation(session, m_terms) {}

  /// Is there an algorithm for all groups?
  bool isOffered() { return algorithmFor(m_numGroups) != nullptr; }

  std::size_t workspaceBytes() const override { return tableBytes() + kMaxWorkspaceBytes; }

  bool fits(std::span<const std::int64_t> rows) override {
    const auto isGroupAligned = [&](std::int64_t each) {
      return isAligned(termsOf(withRows(m_problem, m_extent, each)));
    };
    return rows.empty() || (std::ranges::all_of(rows, isGroupAligned) && algorithmFor(rows.size()));
  }

  void multiply(std::span<const GroupGemm> groups, std::byte* workspace, Stream stream) override {
    if (groups.empty()) return;
    const CublasLtCandidate* const algorithm = algorithmFor(groups.size());
    if (!algorithm) checkBlas(m_session.library(), CUBLAS_STATUS_NOT_SUPPORTED, "find an algorithm for groups");
    Table table;
    const Layouts layouts = layoutsOf(groups, table, workspace);
    const Arrays arrays = arraysOf(groups, table, workspace);
    launchStoreWords(table.words(), workspace, stream);
    const CublasLt& library = m_session.library();
    checkBlas(
        library,
        library.matmul(m_session.handle(), m_operation.get(), arrays.factors, arrays.a, layouts.a.get(), arrays.b,
                       layouts.b.get(), arrays.factors + sizeof(float), arrays.c, layouts.d.get(), arrays.d,
                       layouts.d.get(), &algorithm->algo, workspace + tableBytes(), algorithm->workspaceSize, stream),
        "multiply groups");
    ++numLaunched;
  }

 private:
  /// C has the layout of D: C may be D only where both layouts are one object.
  struct Layouts {
    OwnedLayout a, b, d;
  };

  /// On the device: alpha and beta, and the addresses of the groups' matrices.
  struct Arrays {
    const std::byte *factors, *a, *b, *c;
    std::byte* d;
  };

  std::size_t tableBytes() const {
    constexpr std::size_t kExtents = 3 * 3, kPointers = 6, kFactors = 1;
    return workspacePart((kExtents * ((m_numGroups + 1) / 2) + kPointers * m_numGroups + kFactors) *
                         sizeof(std::uint64_t));
  }

  template <class Pointer>
  static std::vector<const void*> pointersOf(std::span<const GroupGemm> groups, Pointer GemmPointers::*member) {
    std::vector<const void*> pointers;
    for (const GroupGemm& group : groups) pointers.push_back(group.pointers.*member);
    return pointers;
  }

  /// Also sets the addresses of scales. A is our b, and the reverse.
  Arrays arraysOf(std::span<const GroupGemm> groups, Table& table, std::byte* memory) {
    const auto pointers = [&](auto member) { return memory + table.addPointers(pointersOf(groups, member)); };
    if (m_problem.aCodes) {
      m_operation.set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, pointers(&GemmPointers::bScales));
      m_operation.set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, pointers(&GemmPointers::aScales));
    }
    std::byte* const d = pointers(&GemmPointers::c);
    return {.factors = memory + table.addFloats(m_problem.alpha, m_problem.hasAddend ? 1.0F : 0.0F),
            .a = pointers(&GemmPointers::b),
            .b = pointers(&GemmPointers::a),
            .c = m_problem.hasAddend ? pointers(&GemmPointers::addend) : d,
            .d = d};
  }

  Layouts layoutsOf(std::span<const GroupGemm> groups, Table& table, const std::byte* memory) const {
    std::vector<CublasLayout> each;
    for (const GroupGemm& group : groups) each.push_back(layoutOf(withRows(m_problem, m_extent, group.rows)));
    const auto extents = [&](const ColumnMajor CublasLayout::*matrix) {
      const auto array = [&](std::int64_t ColumnMajor::*member) {
        std::vector<std::int32_t> values;
        for (const CublasLayout& layout : each) values.push_back(static_cast<std::int32_t>(layout.*matrix.*member));
        return table.addInts(values);
      };
      return ExtentTable{array(&ColumnMajor::rows), array(&ColumnMajor::cols), array(&ColumnMajor::leadingDimension)};
    };
    const ExtentTable a = extents(&CublasLayout::a);
    const ExtentTable b = extents(&CublasLayout::b);
    const ExtentTable d = extents(&CublasLayout::d);
    return makeLayouts(each.size(), a, b, d, memory);
  }

  Layouts makeLayouts(std::size_t count, const ExtentTable& a, const ExtentTable& b, const ExtentTable& d,
                      const std::byte* memory) const {
    const auto make = [&](cudaDataType_t type, const ExtentTable& table) {
      const CublasLt& library = m_session.library();
      cublasLtMatrixLayout_t made = nullptr;
      checkBlas(library,
                library.createGroupedLayout(&made, type, static_cast<int>(count), memory + table.rows,
                                            memory + table.cols, memory + table.leadingDimensions),
                "describe the matrices of groups");
      return OwnedLayout(made, library.destroyLayout);
    };
    return {make(m_terms.aType, a), make(m_terms.bType, b), make(m_terms.dType, d)};
  }

  /// nullptr: the library has none for this number of groups. Throws DeviceFault: it could not search.
  const CublasLtCandidate* algorithmFor(std::size_t count) {
    auto known = m_algorithms.find(count);
    if (known == m_algorithms.end()) known = m_algorithms.emplace(count, search(count)).first;
    return known->second ? &*known->second : nullptr;
  }

  std::optional<CublasLtCandidate> search(std::size_t count) const {
    // The search reads the number of groups, not the tables.
    alignas(8) constexpr static std::byte kStandIn[8] = {};
    const Layouts layouts = makeLayouts(count, {}, {}, {}, kStandIn);
    const OwnedPreference preference = makePreference(m_session.library(), m_terms);
    preferAverages(preference.get(), count);
    CublasLtCandidate found{};
    int numFound = 0;
    const cublasStatus_t status =
        m_session.library().heuristic(m_session.handle(), m_operation.get(), layouts.a.get(), layouts.b.get(),
                                      layouts.d.get(), layouts.d.get(), preference.get(), 1, &found, &numFound);
    if (status == CUBLAS_STATUS_ALLOC_FAILED)
      checkBlas(m_session.library(), status, "search for an algorithm for groups");
    const bool isFound = status == CUBLAS_STATUS_SUCCESS && numFound > 0 && found.state == CUBLAS_STATUS_SUCCESS;
    return isFound ? std::optional(found) : std::nullopt;
  }

  /// Hints: a version that does not know them may do without.
  void preferAverages(cublasLtMatmulPreference_t preference, std::size_t count) const {
    const std::int64_t rows = std::max<std::int64_t>(m_problem.*m_extent / static_cast<std::int64_t>(count), 1);
    const GemmProblem average = withRows(m_problem, m_extent, rows);
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, std::int64_t value) {
      m_session.library().setPreference(preference, attribute, &value, sizeof(value));
    };
    prefer(kAverageRows, average.n);
    prefer(kAverageCols, average.m);
    prefer(kAverageSum, average.k);
  }

  const CublasLtSession& m_session;
  GemmProblem m_problem;
  GroupExtent m_extent;
  std::size_t m_numGroups;
  CublasLtTerms m_terms;
  CublasLtOperation m_operation;
  std::map<std::size_t, std::optional<CublasLtCandidate>> m_algorithms;  // by the number of groups
};

}  // namespace

Result<std::unique_ptr<GroupedGemm>> prepareGroups(const CublasLtSession& session, const GemmProblem& problem,
                                                   GroupExtent extent, std::size_t numGroups) {
  const auto refused = [](const std::string& why) {
    return Error{fmt::format("cuBLASLt multiplies each group by itself: {}.", why), ErrorKind::RunFailed};
  };
  if (!session.library().createGroupedLayout) return refused("this version has no grouped GEMM");
  if (const Verdict can = canBeGrouped(problem, session.library().version()); !can) return refused(can.reason());
  try {
    auto groups = std::make_unique<CublasLtGroups>(session, problem, extent, numGroups);
    if (!groups->isOffered()) return refused("it has no algorithm for these groups");
    return std::unique_ptr<GroupedGemm>(std::move(groups));
  } catch (const DeviceFault& refusal) {
    return refused(refusal.what());
  }
}

}  // namespace fuseline::cuda
