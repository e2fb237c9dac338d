// Sizes are found by trying: the consequences of a size, and its constraints, are known only to lowering.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/padding.h"

#include "core/edit/apply_edit.h"
#include "core/quant/apply_recipe.h"
#include "core/tensor/scaling.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace fuseline {

namespace {

constexpr const char* kMisfitCode = "recipe-shape";

/// Something of the document that says a size.
struct Size {
  std::string name;  // "M", "every 1000"
  std::int64_t value = 0;
  std::function<Edit(std::int64_t)> set;
};

std::int64_t alignmentOf(const Recipe& recipe) {
  std::int64_t alignment = 1;
  for (const OperandRole& role : operandRoles())
    if (const auto quantizer = recipe.quantizerFor(role)) {
      const ScalingTraits& traits = traitsOf(quantizer->scaling);
      alignment = std::max({alignment, traits.contractedMultiple, traits.outerMultiple});
    }
  return alignment;
}

bool isOdd(const Json& value, std::int64_t alignment) {
  return value.is_number_integer() && value.get<std::int64_t>() > 0 && value.get<std::int64_t>() % alignment != 0;
}

// --- Numbers as they are written in inputs and in sizes that ops need ---

void collectNumbers(const Json& value, std::int64_t alignment, std::set<std::int64_t>& found) {
  if (isOdd(value, alignment) && value != 1) found.insert(value.get<std::int64_t>());
  if (value.is_array())
    for (const Json& item : value) collectNumbers(item, alignment, found);
}

Json replaced(const Json& value, std::int64_t from, std::int64_t to) {
  if (value.is_number_integer() && value.get<std::int64_t>() == from) return to;
  if (!value.is_array()) return value;
  Json items = Json::array();
  for (const Json& item : value) items.push_back(replaced(item, from, to));
  return items;
}

bool isSize(const FusibleOperation& operation, const std::string& attribute) {
  const auto spec = std::ranges::find(operation.attributes, attribute, &AttributeSpec::name);
  const bool isKnown = spec != operation.attributes.end() && spec->isRequired();
  return isKnown && (spec->type == AttributeType::Integer || spec->type == AttributeType::IntegerList);
}

/// Calls visit(name, value) for every attribute of the op that is a size.
template <class Visit>
void visitSizes(const DocumentOp& op, const OperationCatalog& catalog, const Visit& visit) {
  const FusibleOperation* operation = catalog.find(op.operation);
  if (!operation || !op.attributes.is_object()) return;
  for (const auto& [name, value] : op.attributes.items())
    if (isSize(*operation, name)) visit(name, value);
}

std::vector<Edit> editsOf(const DocumentBlock& block, const OperationCatalog& catalog, std::int64_t from,
                          std::int64_t to) {
  std::vector<Edit> edits;
  for (DocumentInput input : block.inputs)
    if (const Json shape = replaced(input.shape, from, to); shape != input.shape) {
      input.shape = shape;
      edits.emplace_back(ReplaceInput{input.id, input});
    }
  for (const DocumentOp& op : block.ops)
    visitSizes(op, catalog, [&](const std::string& name, const Json& value) {
      if (const Json next = replaced(value, from, to); next != value)
        edits.emplace_back(SetAttribute{op.id, name, next});
    });
  return edits;
}

void collectNumbers(const DocumentBlock& block, const OperationCatalog& catalog, std::int64_t alignment,
                    std::set<std::int64_t>& found) {
  for (const DocumentInput& input : block.inputs) collectNumbers(input.shape, alignment, found);
  for (const DocumentOp& op : block.ops)
    visitSizes(op, catalog, [&](const std::string&, const Json& value) { collectNumbers(value, alignment, found); });
}

class Sizes {
 public:
  Sizes(const PipelineDocument& document, const LoweringOptions& options)
      : m_document(document), m_options(options), m_catalog(options.catalog ? *options.catalog : builtinOperations()) {}

  /// Those that are not a multiple of the alignment.
  std::vector<Size> odd(std::int64_t alignment) const {
    std::vector<Size> sizes;
    for (const auto& [name, value] : m_document.symbols().items())
      if (isOdd(value, alignment) && !m_options.symbols.contains(name)) sizes.push_back(symbol(name, value));
    std::set<std::int64_t> numbers;
    collectNumbers(m_document.pipeline(), m_catalog, alignment, numbers);
    for (const auto& [name, block] : m_document.blocks()) collectNumbers(block, m_catalog, alignment, numbers);
    for (const std::int64_t value : numbers) sizes.push_back(number(value));
    return sizes;
  }

 private:
  static Size symbol(const std::string& name, const Json& value) {
    return {name, value.get<std::int64_t>(), [name](std::int64_t next) { return SetSymbol{name, next}; }};
  }

  Size number(std::int64_t value) const {
    return {fmt::format("every {}", value), value, [this, value](std::int64_t next) {
              EditGroup group{fmt::format("Pad {} to {}", value, next),
                              editsOf(m_document.pipeline(), m_catalog, value, next)};
              for (const auto& [name, block] : m_document.blocks())
                if (std::vector<Edit> edits = editsOf(block, m_catalog, value, next); !edits.empty())
                  group.edits.emplace_back(EditInBlock{name, std::move(edits)});
              return group;
            }};
  }

  const PipelineDocument& m_document;
  const LoweringOptions& m_options;
  const OperationCatalog& m_catalog;
};

/// Names of the ops that do not fit.
using Misfits = std::set<std::string>;

Misfits misfitsIn(const std::vector<Diagnostic>& diagnostics) {
  Misfits misfits;
  for (const Diagnostic& diagnostic : diagnostics)
    if (diagnostic.code == kMisfitCode) misfits.insert(diagnostic.node);
  return misfits;
}

class Padding {
 public:
  Padding(const PipelineDocument& document, const LoweringOptions& options, const Recipe& recipe,
          std::vector<Diagnostic>& diagnostics)
      : m_document(document),
        m_options(options),
        m_recipe(recipe),
        m_diagnostics(diagnostics),
        m_alignment(alignmentOf(recipe)) {}

  void addRepairs() {
    const Sizes all(m_document, m_options);
    const std::vector<Size> odd = all.odd(m_alignment);
    for (const Size& size : odd) addRepairs(size);
    if (odd.size() > 1) addRepairOfAll(odd);
  }

 private:
  /// Smaller multiples may do where other sizes bring the rest of the factor.
  void addRepairs(const Size& size) {
    Misfits left = misfitsIn(m_diagnostics);
    const std::int64_t largest = roundedUp(size.value, m_alignment);
    const std::optional<Misfits> last = misfitsAfter(size.set(largest));
    if (!last || std::ranges::includes(*last, left)) return;
    for (std::int64_t multiple = 2; multiple <= m_alignment; multiple *= 2) {
      const std::int64_t next = roundedUp(size.value, multiple);
      if (next == size.value) continue;
      const std::optional<Misfits> after = next == largest ? last : misfitsAfter(size.set(next));
      if (!after) continue;
      offer(paddingOf(size, next), left, *after);
      std::erase_if(left, [&](const std::string& node) { return !after->contains(node); });
    }
  }

  /// For layers of which more than one size is odd: without those that are not needed.
  void addRepairOfAll(std::vector<Size> sizes) {
    const Misfits wanted = unrepaired();
    const auto first = misfitsAfter(paddingOf(sizes).edit);
    if (wanted.empty() || !first || std::ranges::includes(*first, wanted)) return;
    for (std::size_t i = 0; i < sizes.size();) {
      std::vector<Size> fewer = sizes;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      if (misfitsAfter(paddingOf(fewer).edit) == first)
        sizes = std::move(fewer);
      else
        ++i;
    }
    offer(paddingOf(sizes), wanted, *first);
  }

  Repair paddingOf(const std::vector<Size>& sizes) const {
    EditGroup group;
    for (const Size& size : sizes) {
      const std::int64_t next = roundedUp(size.value, m_alignment);
      group.label += fmt::format("{}{} to {}", group.label.empty() ? "Pad " : ", ", size.name, next);
      group.edits.push_back(size.set(next));
    }
    return {group.label, group};
  }

  Misfits unrepaired() const {
    Misfits nodes;
    for (const Diagnostic& diagnostic : m_diagnostics)
      if (diagnostic.code == kMisfitCode && diagnostic.repairs.empty()) nodes.insert(diagnostic.node);
    return nodes;
  }

  std::optional<Misfits> misfitsAfter(const Edit& edit) const {
    PipelineDocument padded = m_document;
    if (!applyEdit(padded, edit)) return std::nullopt;
    LoweredGraph lowered = lower(padded, m_options);
    if (hasErrors(lowered.diagnostics)) return std::nullopt;
    std::vector<Diagnostic> diagnostics;
    applyRecipe(std::move(lowered.graph), m_recipe, diagnostics);
    return misfitsIn(diagnostics);
  }

  /// To those of the misfits that are gone.
  void offer(const Repair& repair, const Misfits& misfits, const Misfits& after) {
    for (Diagnostic& diagnostic : m_diagnostics)
      if (diagnostic.code == kMisfitCode && misfits.contains(diagnostic.node) && !after.contains(diagnostic.node))
        diagnostic.repairs.push_back(repair);
  }

  static Repair paddingOf(const Size& size, std::int64_t next) {
    const double more = 100.0 * static_cast<double>(next - size.value) / static_cast<double>(size.value);
    return {fmt::format("Pad {} to {} ({:.1f} % more)", size.name, next, more), size.set(next)};
  }

  const PipelineDocument& m_document;
  const LoweringOptions& m_options;
  const Recipe& m_recipe;
  std::vector<Diagnostic>& m_diagnostics;
  std::int64_t m_alignment;
};

}  // namespace

void addPaddingRepairs(const PipelineDocument& document, const LoweringOptions& options, const Recipe& recipe,
                       std::vector<Diagnostic>& diagnostics) {
  if (misfitsIn(diagnostics).empty() || hasErrors(diagnostics)) return;
  Padding(document, options, recipe, diagnostics).addRepairs();
}

}  // namespace fuseline
