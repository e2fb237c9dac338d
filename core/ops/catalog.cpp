// Builds and checks the op library.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/catalog.h"

#include "core/ops/offload.h"
#include "core/ops/parameters.h"
#include "core/support/text.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <variant>

#include <fmt/format.h>

namespace fuseline {

namespace ops {
#define FUSELINE_CATALOG_ENTRY(name) FusibleOperation name();
#include "core/ops/operations.inc"
#undef FUSELINE_CATALOG_ENTRY
}  // namespace ops

namespace {

Verdict checkComposite(const FusibleOperation& op) {
  if (!op.forwardCompute && !op.saveContext && !op.backwardCompute && !op.elementwise) return Verdict::yes();
  return Verdict::no(
      fmt::format("{}: a composite is only its expansion, but it also defines its own computations.", op.name));
}

/// Forward computes, saveContext names backward's inputs, backward computes: an op has all of them or none.
Verdict checkComputations(const FusibleOperation& op) {
  if (op.forwardCompute && !op.saveContext)
    return Verdict::no(fmt::format("{}: forwardCompute is defined without saveContext; define both.", op.name));
  if (op.saveContext && !op.forwardCompute)
    return Verdict::no(fmt::format("{}: saveContext is defined without forwardCompute; define both.", op.name));
  if (op.backwardCompute && !op.forwardCompute)
    return Verdict::no(fmt::format(
        "{}: backwardCompute is defined without forwardCompute and saveContext; define all three.", op.name));
  if (!op.forwardCompute || !op.backwardCompute)
    return Verdict::no(fmt::format("{}: forwardCompute and backwardCompute are both needed.", op.name));
  if (static_cast<bool>(op.elementwise.forward) != static_cast<bool>(op.elementwise.backward))
    return Verdict::no(fmt::format("{}: the elementwise definition has only one direction.", op.name));
  if (op.isView && (op.elementwise || !op.parameters.empty() || op.inputs.size() + op.outputs.size() != 2))
    return Verdict::no(fmt::format("{}: a view has one input and one output, and computes nothing.", op.name));
  return Verdict::yes();
}

Verdict checkBasic(const FusibleOperation& op) {
  if (!op.infer) return Verdict::no(fmt::format("{}: there is no infer function.", op.name));
  if (!op.flops) return Verdict::no(fmt::format("{}: there is no flops function.", op.name));
  if (op.inputs.empty() || op.outputs.empty())
    return Verdict::no(fmt::format("{}: an op needs a main input and a main output.", op.name));
  for (const Port& port : op.inputs)
    if (port.elements == PortElements::Counts && !port.draw)
      return Verdict::no(fmt::format("{}: {} takes counts, but has no draw function.", op.name, port.name));
  return checkComputations(op);
}

Verdict checkKind(const FusibleOperation& op) { return op.isComposite() ? checkComposite(op) : checkBasic(op); }

Result<FusibleOperation> specialiseWithDefaults(const FusibleOperation& op) {
  try {
    return op.specialise(op, defaultAttributes(op));
  } catch (const std::bad_variant_access&) {
    return Error{"it reads an attribute that has no default."};
  }
}

/// Checks the op for its default attributes, which is shown in the palette and used for a new node.
Verdict checkDefaultForm(const FusibleOperation& op) {
  const Result<FusibleOperation> form = specialiseWithDefaults(op);
  if (!form)
    return Verdict::no(fmt::format("{}: specialise refuses the default attributes: {}", op.name, form.error().message));
  if (form->name != op.name)
    return Verdict::no(fmt::format("{}: specialise makes the op {}; the name must stay.", op.name, form->name));
  return checkKind(*form);
}

Verdict check(const FusibleOperation& op) {
  if (op.name.empty()) return Verdict::no("An op has no name.");
  if (const Verdict verdict = checkKind(op); !verdict) return verdict;
  return op.specialise ? checkDefaultForm(op) : Verdict::yes();
}

std::vector<FusibleOperation> listedOperations() {
  return {
#define FUSELINE_CATALOG_ENTRY(name) ops::name(),
#include "core/ops/operations.inc"
#undef FUSELINE_CATALOG_ENTRY
  };
}

OperationCatalog makeBuiltin() {
  Result<OperationCatalog> catalog = OperationCatalog::create(listedOperations());
  if (!catalog) throw std::logic_error(catalog.error().message);
  return std::move(*catalog);
}

}  // namespace

Result<OperationCatalog> OperationCatalog::create(std::vector<FusibleOperation> operations) {
  OperationCatalog catalog;
  for (FusibleOperation& op : operations) {
    if (catalog.find(op.name)) return Error{fmt::format("{}: two ops have this name.", op.name)};
    if (const Verdict verdict = check(op); !verdict) return Error{verdict.reason()};
    if (!op.specialise) declareRequiresGrad(op);
    declareOffload(op);
    catalog.m_operations.push_back(std::make_unique<const FusibleOperation>(std::move(op)));
  }
  return catalog;
}

Result<OperationCatalog> OperationCatalog::withBuiltins(std::vector<FusibleOperation> own) {
  std::vector<FusibleOperation> operations = listedOperations();
  std::ranges::move(own, std::back_inserter(operations));
  return create(std::move(operations));
}

const FusibleOperation* OperationCatalog::find(std::string_view name) const {
  const auto found = std::ranges::find_if(m_operations, [&](const auto& op) { return op->name == name; });
  return found == m_operations.end() ? nullptr : found->get();
}

std::string OperationCatalog::nearestName(std::string_view name) const {
  std::vector<std::string> names;
  for (const auto& op : m_operations) names.push_back(op->name);
  return nearest(name, names);
}

const OperationCatalog& builtinOperations() {
  static const OperationCatalog catalog = makeBuiltin();
  return catalog;
}

}  // namespace fuseline
