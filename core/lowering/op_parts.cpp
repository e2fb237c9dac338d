// Expands composite ops and infers shapes part by part.
// SPDX-License-Identifier: Apache-2.0
#include "core/lowering/op_parts.h"

#include "core/ops/external.h"
#include "core/ops/offload.h"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

namespace fuseline {

bool isCountable(const TensorSpec& spec) {
  std::int64_t size = sizeBytes(spec.dtype);
  return std::ranges::none_of(spec.shape, [&](std::int64_t extent) {
    return __builtin_mul_overflow(size, std::max<std::int64_t>(extent, 1), &size);
  });
}

Result<std::vector<TensorSpec>> inferPart(const OpPart& part, const std::vector<TensorSpec>& inputs,
                                          InferenceProblem& problem) {
  if (auto error = checkElements(*part.operation, inputs)) {
    problem = {"dtype-mismatch", withoutName(error->message, part.operation->name)};
    return *error;
  }
  Result<OperationSpecs> specs = inferSpecs(*part.operation, part.attributes, inputs);
  if (!specs) {
    problem.message = withoutName(specs.error().message, part.operation->name);
    return specs.error();
  }
  for (const auto* list : {&specs->outputs, &specs->parameters, &specs->residuals})
    for (const TensorSpec& spec : *list) {
      if (isCountable(spec)) continue;
      problem = {"integer-overflow",
                 fmt::format("a tensor {} would have more bytes than 64 bits can count.", toString(spec))};
      return Error{problem.message};
    }
  return std::move(specs->outputs);
}

Result<std::vector<TensorSpec>> inferChain(const std::vector<OpPart>& parts, std::vector<TensorSpec> inputs,
                                           InferenceProblem& problem) {
  return runChain(parts, std::move(inputs), [&](const OpPart& part, const std::vector<TensorSpec>& partInputs) {
    return inferPart(part, partInputs, problem);
  });
}

std::string OpParts::pathOf(std::size_t index) const {
  const std::string& id = m_section.op(index).id;
  return m_path.empty() ? id : m_path + "." + id;
}

OpPart OpParts::asWhole(std::size_t index) const {
  return {pathOf(index), m_section.type(index), m_section.attributes(index).values};
}

Result<std::vector<OpPart>> OpParts::inferred(std::size_t index) const {
  if (isExternal(type(index))) return std::vector<OpPart>{asWhole(index)};
  return expand(index, m_section.attributes(index).values);
}

Result<std::vector<OpPart>> OpParts::expand(std::size_t index, const Attributes& attributes) const {
  const std::string id = pathOf(index);
  if (!type(index).isComposite()) return std::vector<OpPart>{{id, m_section.type(index), attributes}};
  std::vector<OpPart> parts;
  for (ExpandedOperation& part : type(index).expand(attributes)) {
    const FusibleOperation& basic = *m_operations.find(part.operation);
    passOnOffload(attributes, basic, part.attributes);
    Result<OperationPointer> own = specialised(basic, part.attributes);
    if (!own) return Error{own.error().message};  // its subject is no attribute of the document's op
    parts.push_back({id + "." + part.suffix, std::move(*own), std::move(part.attributes)});
  }
  if (parts.size() == 1) parts.front().id = id;
  return parts;
}

Result<std::vector<OpPart>> OpParts::expandWith(std::size_t index, const Attributes& attributes) const {
  Result<std::vector<OpPart>> parts = expand(index, attributes);
  const FusibleOperation* written = m_operations.find(m_section.op(index).operation);
  if (!parts || parts->empty() || !written || !written->specialise) return parts;
  Result<OperationPointer> form = specialised(*written, attributes);
  if (!form) return form.error();
  parts->front().operation = std::move(*form);
  return parts;
}

}  // namespace fuseline
