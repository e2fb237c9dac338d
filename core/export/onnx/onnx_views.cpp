// A view follows a tensor from its last node back to one that computes something.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/onnx_views.h"

#include "core/export/onnx/onnx_node_facts.h"
#include "core/lowering/expression.h"

#include <algorithm>
#include <array>
#include <limits>

namespace fuseline {

namespace {

constexpr int kDeepestView = 200;

bool isOneOf(const ::onnx::NodeProto& node, std::initializer_list<std::string_view> types) {
  const bool isStandard = node.domain().empty() || node.domain() == "ai.onnx";
  return isStandard && std::ranges::find(types, std::string_view(node.op_type())) != types.end();
}

/// Elements begin, begin + step .. of an axis. False: they have no one stride.
bool cut(ViewFactors& axis, std::int64_t& offset, std::int64_t begin, std::int64_t count, std::int64_t step) {
  if (count == extentOf(axis)) return begin == 0 && step == 1;
  if (axis.empty()) return false;
  ViewFactor& first = axis.front();
  const std::int64_t inner = extentOf(axis) / first.extent;
  if (begin % inner != 0 || count % inner != 0 || (inner > 1 && step != 1)) return false;
  offset += begin / inner * first.stride;
  first = {count / inner, first.stride * step};
  if (first.extent == 1) axis.erase(axis.begin());
  return true;
}

bool isMovable(std::int64_t axis, const OnnxView& view) {
  return axis >= 0 && axis < static_cast<std::int64_t>(view.axes.size());
}

bool transpose(const ::onnx::NodeProto& node, OnnxView& view) {
  std::vector<ViewFactors> axes(view.axes.rbegin(), view.axes.rend());
  if (const auto* const perm = findAttribute(node, "perm")) {
    if (perm->ints_size() != static_cast<int>(view.axes.size())) return false;
    for (int i = 0; i < perm->ints_size(); ++i) {
      if (!isMovable(perm->ints(i), view)) return false;
      axes[static_cast<std::size_t>(i)] = view.axes[static_cast<std::size_t>(perm->ints(i))];
    }
  }
  view.axes = std::move(axes);
  return true;
}

bool reshape(const Shape& extents, OnnxView& view) {
  ViewFactors all;
  for (const ViewFactors& axis : view.axes) all.insert(all.end(), axis.begin(), axis.end());
  auto axes = regrouped(all, extents);
  if (axes) view.axes = std::move(*axes);
  return axes.has_value();
}

/// Axes of one element are repeated.
bool expand(const Shape& extents, OnnxView& view) {
  if (extents.size() < view.axes.size()) return false;
  view.axes.insert(view.axes.begin(), extents.size() - view.axes.size(), ViewFactors());
  for (std::size_t i = 0; i < extents.size(); ++i) {
    if (extentOf(view.axes[i]) == extents[i]) continue;
    if (extentOf(view.axes[i]) != 1) return false;
    view.axes[i] = {{extents[i], 0}};
  }
  return true;
}

}  // namespace

std::int64_t extentOf(const ViewFactors& axis) {
  std::int64_t extent = 1;
  for (const ViewFactor& factor : axis) extent *= factor.extent;
  return extent;
}

std::vector<ViewFactors> denseAxes(const Shape& extents) {
  std::vector<ViewFactors> axes(extents.size());
  std::int64_t stride = 1;
  for (std::size_t i = extents.size(); i-- > 0; stride *= extents[i])
    if (extents[i] != 1) axes[i] = {{extents[i], stride}};
  return axes;
}

std::optional<std::vector<ViewFactors>> regrouped(const ViewFactors& factors, const Shape& extents) {
  std::vector<ViewFactors> axes;
  ViewFactors left(factors.rbegin(), factors.rend());
  for (std::int64_t extent : extents) {
    ViewFactors& axis = axes.emplace_back();
    while (extent > 1) {
      if (left.empty()) return std::nullopt;
      ViewFactor& next = left.back();
      if (extent % next.extent == 0) {
        axis.push_back(next);
        extent /= next.extent;
        left.pop_back();
      } else if (next.extent % extent == 0) {
        next.extent /= extent;
        axis.push_back({extent, next.stride * next.extent});
        extent = 1;
      } else {
        return std::nullopt;
      }
    }
    if (extent != 1) return std::nullopt;
  }
  return left.empty() ? std::optional(std::move(axes)) : std::nullopt;
}

/// Large enough that no product of extents of a model is one, small enough for 64 bits.
std::int64_t OnnxViews::numberOf(const std::string& symbol) const {
  constexpr std::array<std::int64_t, 10> kPrimes = {kLeastPrime, 10009, 10037, 10039, 10061,
                                                    10067,       10069, 10079, 10091, 10093};
  const auto [entry, isNew] = m_symbols.try_emplace(symbol, 0);
  if (isNew) entry->second = kPrimes[(m_symbols.size() - 1) % kPrimes.size()];
  return entry->second;
}

std::optional<Shape> OnnxViews::extents(const std::string& tensor) const {
  if (const auto known = m_extents.find(tensor); known != m_extents.end()) return known->second;
  const auto* const type = m_reading.type(tensor);
  if (!type || !type->has_shape()) {
    const auto* const constant = m_reading.constant(tensor);
    return constant ? std::optional(shapeOf(*constant)) : std::nullopt;
  }
  constexpr std::int64_t kMost = std::int64_t{1} << 56;  // scores have three symbols
  std::int64_t count = 1;
  Shape shape;
  for (const auto& extent : type->shape().dim()) {
    ExpressionValue value =
        extent.has_dim_value()
            ? ExpressionValue(extent.dim_value())
            : evaluate(extent.dim_param(), [this](const std::string& name) { return std::optional(numberOf(name)); });
    const auto* const number = std::get_if<std::int64_t>(&value);
    if (!number || *number <= 0 || *number > kMost / count) return std::nullopt;
    count *= *number;
    shape.push_back(*number);
  }
  return shape;
}

std::optional<OnnxView> OnnxViews::of(const std::string& tensor) { return find(tensor, false, 0); }
std::optional<OnnxView> OnnxViews::ofScaled(const std::string& tensor) { return find(tensor, true, 0); }

std::optional<OnnxView> OnnxViews::find(const std::string& tensor, bool passesScale, int depth) {
  const std::string& source = m_reading.source(tensor);
  for (const std::string& name : {tensor, source})
    if (const auto known = m_views.find(name); known != m_views.end()) return known->second;
  const ::onnx::NodeProto* const node = m_reading.maker(source);
  if (node && depth < kDeepestView)
    if (auto view = moved(*node, source, passesScale, depth + 1)) return view;
  const std::optional<Shape> own = extents(source);
  return own ? std::optional(OnnxView{.base = source, .axes = denseAxes(*own)}) : std::nullopt;
}

std::optional<OnnxView> OnnxViews::moved(const ::onnx::NodeProto& node, const std::string& tensor, bool passesScale,
                                         int depth) {
  if (passesScale && isOneOf(node, {"Mul", "Div"})) {
    const auto scaled = [&](int x, int number) -> std::optional<OnnxView> {
      const auto value = m_numbers.number(inputOf(node, number));
      if (!value || *value == 0.0 || m_reading.constant(inputOf(node, x))) return std::nullopt;
      auto view = find(inputOf(node, x), true, depth);
      if (view) view->factor *= node.op_type() == "Mul" ? *value : 1.0 / *value;
      return view;
    };
    if (auto view = scaled(0, 1)) return view;
    return node.op_type() == "Mul" ? scaled(1, 0) : std::nullopt;
  }
  if (!isOneOf(node, {"Transpose", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Expand", "Tile", "Slice", "Split",
                      "Gather", "GatherND"}))
    return std::nullopt;
  const std::optional<Shape> made = extents(tensor);
  auto view = m_reading.constant(inputOf(node, 0)) ? std::nullopt : find(inputOf(node, 0), passesScale, depth);
  if (!made || !view) return std::nullopt;
  const bool isMoved = isOneOf(node, {"Transpose"})            ? transpose(node, *view)
                       : isOneOf(node, {"Expand", "Tile"})     ? expand(*made, *view)
                       : isOneOf(node, {"Slice"})              ? slice(node, *view)
                       : isOneOf(node, {"Split"})              ? split(node, tensor, *view)
                       : isOneOf(node, {"Gather", "GatherND"}) ? gather(node, *view)
                                                               : reshape(*made, *view);
  return isMoved ? view : std::nullopt;
}

bool OnnxViews::slice(const ::onnx::NodeProto& node, OnnxView& view) const {
  const auto list = [&](int input, const char* attribute) -> std::optional<std::vector<std::int64_t>> {
    if (const auto* const found = findAttribute(node, attribute))
      return std::vector<std::int64_t>(found->ints().begin(), found->ints().end());
    return inputOf(node, input).empty() ? std::nullopt : m_reading.integers(inputOf(node, input));
  };
  const auto starts = list(1, "starts"), ends = list(2, "ends"), axes = list(3, "axes"), steps = list(4, "steps");
  if (!starts || !ends || starts->size() != ends->size() || (axes && axes->size() != starts->size())) return false;
  if ((!axes && !inputOf(node, 3).empty()) || (!steps && !inputOf(node, 4).empty())) return false;
  for (std::size_t i = 0; i < starts->size(); ++i) {
    std::int64_t axis = axes ? (*axes)[i] : static_cast<std::int64_t>(i);
    if (axis < 0) axis += static_cast<std::int64_t>(view.axes.size());
    const std::int64_t step = steps && i < steps->size() ? (*steps)[i] : 1;
    if (!isMovable(axis, view) || step < 1) return false;
    ViewFactors& factors = view.axes[static_cast<std::size_t>(axis)];
    const std::int64_t extent = extentOf(factors);
    const auto counted = [&](std::int64_t at) {
      return std::clamp<std::int64_t>(at < 0 ? at + extent : at, 0, extent);
    };
    const std::int64_t begin = counted((*starts)[i]), end = counted((*ends)[i]);
    if (end <= begin || !cut(factors, view.offset, begin, (end - begin + step - 1) / step, step)) return false;
  }
  return true;
}

bool OnnxViews::split(const ::onnx::NodeProto& node, const std::string& tensor, OnnxView& view) const {
  std::int64_t axis = integerOf(node, "axis", 0);
  if (axis < 0) axis += static_cast<std::int64_t>(view.axes.size());
  if (!isMovable(axis, view)) return false;
  const auto place = static_cast<std::size_t>(axis);
  std::int64_t begin = 0;
  for (const std::string& output : node.output()) {
    const std::optional<Shape> part = extents(output);
    if (!part || part->size() != view.axes.size()) return false;
    if (output == tensor) return cut(view.axes[place], view.offset, begin, (*part)[place], 1);
    begin += (*part)[place];
  }
  return false;
}

bool OnnxViews::gather(const ::onnx::NodeProto& node, OnnxView& view) const {
  const auto* const constant = m_reading.constant(inputOf(node, 1));
  const auto index = constant ? integersOf(*constant) : std::nullopt;
  std::int64_t axis = integerOf(node, "axis", 0);
  if (axis < 0) axis += static_cast<std::int64_t>(view.axes.size());
  const bool isNd = node.op_type() == "GatherND";  // one index of the first axis, which stays
  if (isNd && integerOf(node, "batch_dims", 0) != 0) return false;
  if (!index || index->size() != 1 || constant->dims_size() > (isNd ? 2 : 1) || !isMovable(axis, view)) return false;
  const auto place = static_cast<std::size_t>(axis);
  std::int64_t at = index->front().number().value_or(-1);
  const std::int64_t extent = extentOf(view.axes[place]);
  if (at < 0) at += extent;
  if (at < 0 || at >= extent) return false;
  for (std::size_t i = view.axes[place].size(); i-- > 0;) {
    const ViewFactor& factor = view.axes[place][i];
    view.offset += at % factor.extent * factor.stride;
    at /= factor.extent;
  }
  view.axes[place].clear();
  if (constant->dims_size() == (isNd ? 1 : 0)) view.axes.erase(view.axes.begin() + axis);
  return true;
}

}  // namespace fuseline
