// One GEMM for all groups, or one for every number of rows when it first occurs.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/group_products.h"

#include "core/tensor/grouped_copy.h"
#include "core/tensor/scaling.h"
#include "kernels/cuda/support/workspace.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

namespace fuseline::cuda {

namespace {

/// Number of GEMM sizes that are tuned; the others use cuBLASLt's top heuristic: a layer may have hundreds of groups
/// with different sizes.
constexpr std::size_t kMostTuned = 8;

/// Contracted rows that cuBLASLt multiplies in quantized form on every GPU: FP4, and blocks of 128 as those of MXFP8.
constexpr std::int64_t kWholeRows = kFp4RowMultiple;
static_assert(kWholeRows == 32);

/// [rows, columns], without groups.
TensorSpec partOf(const TensorSpec& whole, std::int64_t rows) {
  TensorSpec part{whole.dtype, {rows, whole.cols()}, whole.quantized};
  if (part.quantized) part.quantized->numGroups = 0;
  return part;
}

/// Bits of an element, the narrowest of the factors and the result.
std::int64_t narrowestBits(const GemmProblem& problem) {
  std::int64_t bits = 8 * std::min(sizeBytes(problem.factorType), sizeBytes(problem.cType));
  for (const std::optional<FactorCodes>& codes : {problem.aCodes, problem.bCodes})
    if (codes) bits = std::min<std::int64_t>(bits, codes->format == ElementFormat::E2M1 ? 4 : 8);
  return bits;
}

std::vector<GroupPart> codedParts(const TensorSpec& copy, std::span<const std::int64_t> sizes,
                                  const std::byte* memory) {
  std::vector<GroupPart> parts;
  for (GroupCopy& group : groupCopies(copy, sizes))
    parts.push_back({std::move(group.spec), memory ? memory + group.offset : nullptr});
  return parts;
}

}  // namespace

GroupFactor::GroupFactor(Binding rows) : m_bindings{std::move(rows)}, m_hasRows(true) {}

GroupFactor::GroupFactor(const CompileRequest& request, const GroupedParameter& weights) {
  for (int slot = 0; slot < weights.numSlots; ++slot)
    m_bindings.push_back(findOperand(request, {0, OperandKind::Parameter, weights.firstSlot + slot}));
  if (weights.isSingle) m_numWeights = groupedForm(request.member(0).attributes).numGroups;
}

TensorSpec GroupFactor::largestPart() const {
  const TensorSpec& whole = any().spec;
  return partOf(whole, m_numWeights > 0 ? whole.rows() / m_numWeights : whole.rows());
}

std::vector<GroupPart> GroupFactor::parts(std::span<const RowGroup> groups, Pointers pointers) const {
  return m_hasRows ? rowParts(groups, pointers) : weightParts(groups.size(), pointers);
}

std::vector<GroupPart> GroupFactor::rowParts(std::span<const RowGroup> groups, Pointers pointers) const {
  std::vector<std::int64_t> sizes;
  std::ranges::transform(groups, std::back_inserter(sizes), &RowGroup::size);
  if (any().spec.quantized) return codedParts(any().spec, sizes, any().at(pointers));
  std::vector<GroupPart> parts;
  for (const RowGroup& group : groups)
    parts.push_back({partOf(any().spec, group.size), rowOf(any(), pointers, group.first)});
  return parts;
}

std::vector<GroupPart> GroupFactor::weightParts(std::size_t numGroups, Pointers pointers) const {
  std::vector<GroupPart> parts;
  if (m_numWeights == 0) {
    for (const Binding& weight : m_bindings) parts.push_back({weight.spec, weight.at(pointers)});
    return parts;
  }
  const TensorSpec part = largestPart();
  if (part.quantized)
    return codedParts(any().spec, std::vector<std::int64_t>(numGroups, part.rows()), any().at(pointers));
  for (std::size_t i = 0; i < numGroups; ++i)
    parts.push_back({part, rowOf(any(), pointers, static_cast<std::int64_t>(i) * part.rows())});
  return parts;
}

GroupProducts::GroupProducts(const CompileRequest& request, const GemmProblem& problem, GroupExtent extent,
                             GroupFactor a, GroupFactor b)
    : m_device(&request.device), m_problem(problem), m_extent(extent), m_a(std::move(a)), m_b(std::move(b)) {
  m_factorBytes = mostFactorBytes();
}

std::size_t GroupProducts::mostFactorBytes() const {
  const auto bytesOf = [&](FactorWay way) {
    return FactorPair(m_a.largestPart(), m_b.largestPart(), way, inWay(m_problem, way)).workspaceBytes();
  };
  const std::size_t bytes = bytesOf(wayFor(m_problem.*m_extent));
  // Some group may have rows that cuBLASLt does not multiply in quantized form.
  return dependsOnRows() ? std::max(bytes, bytesOf(FactorWay::Decoded)) : bytes;
}

Result<GroupProducts> GroupProducts::make(const CompileRequest& request, GemmProblem problem, GroupExtent extent,
                                          GroupFactor a, GroupFactor b) {
  // Groups begin at any row; the narrowest operand decides the alignment of that offset.
  const std::int64_t elements = std::gcd(request.member(0).attributes.integer("in_features"),
                                         request.member(0).attributes.integer("out_features"));
  const std::int64_t rowBytes = elements * narrowestBits(problem) / 8;
  problem.alignmentBytes = std::gcd(problem.alignmentBytes, static_cast<std::uint32_t>(rowBytes));
  GroupProducts products(request, problem, extent, std::move(a), std::move(b));
  Result<void> added = products.addSamples();
  if (!added && problem.aCodes) {
    products.decode();
    added = products.addSamples();
  }
  if (!added) return added.error();
  products.prepareTogether(static_cast<std::size_t>(groupedForm(request.member(0).attributes).numGroups));
  return products;
}

/// Factors that need a pass of their own are prepared group by group, and would be as many launches again.
void GroupProducts::prepareTogether(std::size_t numGroups) {
  if (m_factorBytes > 0) return;
  const GemmProblem problem = inWay(m_problem, wayFor(m_problem.*m_extent));
  Result<std::unique_ptr<GroupedGemm>> together = m_device->gemms->prepareGrouped(problem, m_extent, numGroups);
  if (together) m_together = std::move(*together);
}

/// Checks whether there are algorithms at all: the sizes come with the first run. Some groups may be multiplied in
/// quantized form if each group decides separately.
Result<void> GroupProducts::addSamples() {
  if (Result<void> added = add(m_problem.*m_extent, false); !added) return added;
  return dependsOnRows() ? add(roundedUp(m_problem.*m_extent + 1, kWholeRows), false) : Result<void>();
}

void GroupProducts::decode() {
  m_isDecoded = true;
  m_factorBytes = mostFactorBytes();
  m_gemms.clear();
}

std::vector<std::string> GroupProducts::ways() const {
  if (!m_device) return {};
  std::vector<std::string> ways = {describe(dependsOnRows() ? wayFor(kWholeRows) : wayFor(m_problem.*m_extent))};
  std::erase(ways, "");
  if (dependsOnRows())
    ways.push_back(
        fmt::format("{}, in groups whose rows are not a multiple of {}", describe(FactorWay::Decoded), kWholeRows));
  if (m_together)
    ways.push_back("groups are multiplied in one launch where cuBLASLt has an algorithm for their number");
  return ways;
}

/// If rows are contracted, their number decides whether cuBLASLt multiplies the quantized factors.
bool GroupProducts::dependsOnRows() const {
  return m_extent == &GemmProblem::k && wayFor(kWholeRows) != wayFor(kWholeRows / 2);
}

void GroupProducts::begin(std::span<const RowGroup> groups, Pointers pointers) {
  if (!m_device) return;
  m_aParts = m_a.parts(groups, pointers);
  m_bParts = m_b.parts(groups, pointers);
  m_areTogether = canBeTogether(groups);
  if (m_areTogether) return;
  // Tune here, before groups run concurrently, which would disturb the timings.
  for (const RowGroup& group : groups)
    if (group.size > 0) of(group.size);
}

bool GroupProducts::canBeTogether(std::span<const RowGroup> groups) const {
  if (!m_together) return false;
  std::vector<std::int64_t> rows;
  for (const RowGroup& group : groups)
    if (group.size > 0) rows.push_back(group.size);
  return m_together->fits(rows);
}

/// A contraction over no rows is not one of the library's: it leaves zero, or the addend.
void GroupProducts::multiplyTogether(std::span<const RowGroup> groups,
                                     const std::function<GemmPointers(std::size_t)>& others, std::byte* workspace) {
  const Lane lane{m_device->stream, workspace};
  std::vector<GroupGemm> gemms;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    GemmPointers pointers = others(i);
    if (!pointers.c) continue;
    if (groups[i].size == 0) {
      if (m_extent == &GemmProblem::k) of(0).multiply(pointers, workspace, m_device->stream);
      continue;
    }
    prepareFactors(i, groups[i].size, pointers, lane);
    gemms.push_back({groups[i].size, pointers});
  }
  m_together->multiply(gemms, workspace, m_device->stream);
}

void GroupProducts::prepareFactors(std::size_t group, std::int64_t rows, GemmPointers& pointers,
                                   const Lane& lane) const {
  const GroupPart& aPart = m_aParts[group];
  const GroupPart& bPart = m_bParts[group];
  pointers.a = aPart.data;
  pointers.b = bPart.data;
  const FactorWay way = wayFor(rows);
  FactorPair(aPart.spec, bPart.spec, way, inWay(problemFor(rows), way)).prepare(pointers, lane.workspace, lane.stream);
}

void GroupProducts::multiply(std::size_t group, std::int64_t rows, GemmPointers others, const Lane& lane) {
  prepareFactors(group, rows, others, lane);
  of(rows).multiply(others, lane.workspace + m_factorBytes, lane.stream);
}

std::size_t GroupProducts::gemmBytes() const { return workspacePart(m_device->gemms->maxWorkspaceBytes()); }

Gemm& GroupProducts::of(std::int64_t rows) {
  if (!m_gemms.contains(rows))
    if (Result<void> added = add(rows, m_gemms.size() <= kMostTuned); !added)
      throw std::runtime_error(added.error().message);
  return *m_gemms.at(rows);
}

GemmProblem GroupProducts::problemFor(std::int64_t rows) const {
  GemmProblem problem = m_problem;
  problem.*m_extent = rows;
  return problem;
}

FactorWay GroupProducts::wayFor(std::int64_t rows) const {
  return m_isDecoded ? FactorWay::Decoded : factorWayOf(problemFor(rows), m_device->capability);
}

Result<void> GroupProducts::add(std::int64_t rows, bool hasTimeToTune) {
  GemmProblem problem = inWay(problemFor(rows), wayFor(rows));
  problem.hasTimeToTune = hasTimeToTune;
  Result<std::unique_ptr<Gemm>> gemm = m_device->gemms->prepare(problem);
  if (!gemm) return gemm.error();
  m_gemms.emplace(rows, std::move(*gemm));
  return {};
}

}  // namespace fuseline::cuda
