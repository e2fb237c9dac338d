// In double precision, as all of OnnxNumbers.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/import/number_functions.h"

#include "core/export/onnx/onnx_weights.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string_view>
#include <utility>

namespace fuseline {

namespace {

/// Those of an attribute in old opsets, of an input in new ones.
std::vector<std::int64_t> axesOf(const ::onnx::NodeProto& node, const std::vector<double>& numbers) {
  std::vector<std::int64_t> axes;
  for (const double axis : numbers) axes.push_back(static_cast<std::int64_t>(axis));
  const auto* const attribute = findAttribute(node, "axes");
  if (attribute) axes.assign(attribute->ints().begin(), attribute->ints().end());
  return axes;
}

/// Counted from the front, in order. Nothing: one of them is no axis.
std::optional<std::vector<std::int64_t>> sortedAxes(std::vector<std::int64_t> axes, std::size_t rank) {
  for (std::int64_t& axis : axes) {
    if (axis < 0) axis += static_cast<std::int64_t>(rank);
    if (axis < 0 || axis >= static_cast<std::int64_t>(rank)) return std::nullopt;
  }
  std::ranges::sort(axes);
  return axes;
}

double combined(std::string_view type, double all, double each) {
  if (type == "ReduceMax") return std::max(all, each);
  if (type == "ReduceMin") return std::min(all, each);
  return all + (type == "ReduceSumSquare" || type == "ReduceL2" ? each * each : each);
}

bool isReduction(std::string_view type) {
  constexpr std::array kTypes = {"ReduceMean", "ReduceSum", "ReduceSumSquare", "ReduceL2", "ReduceMax", "ReduceMin"};
  return std::ranges::find(kTypes, type) != kTypes.end();
}

std::optional<Shape> shapeOfReshape(const ::onnx::NodeProto& node, const Shape& x, const std::vector<double>& numbers) {
  Shape shape;
  for (std::size_t axis = 0; axis < numbers.size(); ++axis) {
    const bool isKept = numbers[axis] == 0.0 && integerOf(node, "allowzero", 0) == 0;
    if (isKept && axis >= x.size()) return std::nullopt;
    shape.push_back(isKept ? x[axis] : static_cast<std::int64_t>(numbers[axis]));
  }
  const auto open = std::ranges::find(shape, -1);
  if (open == shape.end()) return shape;
  *open = 1;
  const std::int64_t rest = numElements(shape);
  if (rest <= 0 || numElements(x) % rest != 0) return std::nullopt;
  *open = numElements(x) / rest;
  return shape;
}

}  // namespace

NumberArrayPtr reducedNumbers(const ::onnx::NodeProto& node, const NumberArray& x, const std::vector<double>& numbers) {
  const std::string& type = node.op_type();
  std::vector<std::int64_t> wanted = axesOf(node, numbers);
  if (wanted.empty() && integerOf(node, "noop_with_empty_axes", 0) == 0) {
    wanted.resize(x.shape.size());
    std::iota(wanted.begin(), wanted.end(), 0);
  }
  const auto axes = sortedAxes(std::move(wanted), x.shape.size());
  if (!isReduction(type) || !axes || x.values.empty()) return nullptr;
  Shape shape = x.shape;
  for (const std::int64_t axis : *axes) shape[static_cast<std::size_t>(axis)] = 1;
  const auto count = static_cast<std::size_t>(numElements(shape));
  NumberArray places{shape, std::vector<double>(count)};
  std::iota(places.values.begin(), places.values.end(), 0.0);
  std::vector<bool> isBegun(count, false);
  const bool isExtreme = type == "ReduceMax" || type == "ReduceMin";
  NumberArray result{shape, std::vector<double>(count, 0.0)};
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    const auto at = static_cast<std::size_t>(broadcastAt(places, x.shape, static_cast<std::int64_t>(i)));
    double& all = result.values[at];
    all = isExtreme && !isBegun[at] ? x.values[i] : combined(type, all, x.values[i]);
    isBegun[at] = true;
  }
  const double each = static_cast<double>(x.values.size()) / static_cast<double>(count);
  for (double& value : result.values) {
    if (type == "ReduceMean") value /= each;
    if (type == "ReduceL2") value = std::sqrt(value);
  }
  if (integerOf(node, "keepdims", 1) == 0)
    for (auto axis = axes->rbegin(); axis != axes->rend(); ++axis) result.shape.erase(result.shape.begin() + *axis);
  return std::make_shared<const NumberArray>(std::move(result));
}

NumberArrayPtr dequantizedNumbers(const ::onnx::NodeProto& node, const NumberArray& x, const NumberArray& scale,
                                  const NumberArray* zeroPoint) {
  const std::int64_t given = integerOf(node, "axis", 1), block = integerOf(node, "block_size", 0);
  const std::int64_t axis = given < 0 ? given + static_cast<std::int64_t>(x.shape.size()) : given;
  const std::size_t count = scale.values.size();
  if (count != 1 && static_cast<std::int64_t>(count) != numScales(x.shape, axis, block)) return nullptr;
  if (zeroPoint && zeroPoint->values.size() != count && zeroPoint->values.size() != 1) return nullptr;
  NumberArray result{x.shape, x.values};
  for (std::size_t i = 0; i < result.values.size(); ++i) {
    const std::size_t at = count == 1 ? 0 : scaleIndex(x.shape, static_cast<std::int64_t>(i), axis, block);
    if (zeroPoint) result.values[i] -= zeroPoint->values[zeroPoint->values.size() == 1 ? 0 : at];
    result.values[i] *= scale.values[at];
  }
  return std::make_shared<const NumberArray>(std::move(result));
}

std::optional<Shape> viewShape(const ::onnx::NodeProto& node, const Shape& x, const std::vector<double>& numbers) {
  if (node.op_type() == "Reshape") return shapeOfReshape(node, x, numbers);
  if (node.op_type() == "Flatten") {
    const auto axis = sortedAxes({integerOf(node, "axis", 1)}, x.size() + 1);
    if (!axis) return std::nullopt;
    const Shape rows(x.begin(), x.begin() + axis->front()), cols(x.begin() + axis->front(), x.end());
    return Shape{numElements(rows), numElements(cols)};
  }
  const std::vector<std::int64_t> wanted = axesOf(node, numbers);
  const bool isLonger = node.op_type() == "Unsqueeze";
  const auto axes = sortedAxes(wanted, x.size() + (isLonger ? wanted.size() : 0));
  if (!axes) return std::nullopt;
  Shape shape = x;
  if (isLonger) {
    for (const std::int64_t axis : *axes) shape.insert(shape.begin() + axis, 1);
  } else if (axes->empty()) {
    std::erase(shape, 1);
  } else {
    for (auto axis = axes->rbegin(); axis != axes->rend(); ++axis) shape.erase(shape.begin() + *axis);
  }
  return shape;
}

NumberArrayPtr shapeNumbers(const ::onnx::NodeProto& node, const Shape& x) {
  const auto rank = static_cast<std::int64_t>(x.size());
  const auto counted = [&](std::int64_t at) { return std::clamp<std::int64_t>(at < 0 ? at + rank : at, 0, rank); };
  const std::int64_t first = counted(integerOf(node, "start", 0)), end = counted(integerOf(node, "end", rank));
  NumberArray result{{std::max<std::int64_t>(end - first, 0)}, {}};
  if (first < end) result.values.assign(x.begin() + first, x.begin() + end);
  return std::make_shared<const NumberArray>(std::move(result));
}

NumberArrayPtr gatheredNumbers(const NumberArray& x, const NumberArray& indices) {
  const std::int64_t depth = indices.shape.empty() ? 0 : indices.shape.back();
  if (depth < 1 || depth > static_cast<std::int64_t>(x.shape.size())) return nullptr;
  NumberArray result{Shape(indices.shape.begin(), indices.shape.end() - 1), {}};
  result.shape.insert(result.shape.end(), x.shape.begin() + depth, x.shape.end());
  if (numElements(result.shape) > kMostNumbers) return nullptr;
  const std::int64_t size = numElements(Shape(x.shape.begin() + depth, x.shape.end()));
  for (std::size_t at = 0; at < indices.values.size(); at += static_cast<std::size_t>(depth)) {
    std::int64_t place = 0;
    for (std::int64_t axis = 0; axis < depth; ++axis) {
      const std::int64_t extent = x.shape[static_cast<std::size_t>(axis)];
      auto index = static_cast<std::int64_t>(indices.values[at + static_cast<std::size_t>(axis)]);
      if (index < 0) index += extent;
      if (index < 0 || index >= extent) return nullptr;
      place = place * extent + index;
    }
    const auto first = x.values.begin() + place * size;
    result.values.insert(result.values.end(), first, first + size);
  }
  return std::make_shared<const NumberArray>(std::move(result));
}

NumberArrayPtr tiledNumbers(const NumberArray& x, const std::vector<double>& repeats) {
  if (repeats.size() != x.shape.size()) return nullptr;
  NumberArray tiled = x;
  std::int64_t inner = 1;  // numbers of one step of the axis
  for (std::size_t axis = repeats.size(); axis-- > 0;) {
    if (!(repeats[axis] >= 0.0 && repeats[axis] <= static_cast<double>(kMostNumbers))) return nullptr;
    const auto count = static_cast<std::int64_t>(repeats[axis]);
    const std::int64_t block = inner * x.shape[axis];
    if (std::ssize(tiled.values) * count > kMostNumbers) return nullptr;
    std::vector<double> values;
    for (auto first = tiled.values.begin(); block > 0 && first != tiled.values.end(); first += block)
      for (std::int64_t i = 0; i < count; ++i) values.insert(values.end(), first, first + block);
    tiled.values = std::move(values);
    tiled.shape[axis] = x.shape[axis] * count;
    inner = tiled.shape[axis] * inner;
  }
  return std::make_shared<const NumberArray>(std::move(tiled));
}

NumberArrayPtr cumulatedNumbers(const ::onnx::NodeProto& node, const NumberArray& x, std::int64_t given) {
  const auto axes = sortedAxes({given}, x.shape.size());
  if (!axes) return nullptr;
  const auto axis = static_cast<std::size_t>(axes->front());
  const std::int64_t extent = x.shape[axis];
  const std::int64_t stride = numElements(Shape(x.shape.begin() + axes->front() + 1, x.shape.end()));
  const bool isReverse = integerOf(node, "reverse", 0) != 0, isExclusive = integerOf(node, "exclusive", 0) != 0;
  NumberArray result{x.shape, std::vector<double>(x.values.size(), 0.0)};
  const std::size_t count = x.values.size();
  for (std::size_t step = 0; step < count; ++step) {
    const std::size_t at = isReverse ? count - 1 - step : step;
    const std::int64_t place = static_cast<std::int64_t>(at) / stride % extent;
    double& sum = result.values[at];
    if (place != (isReverse ? extent - 1 : 0)) {
      const auto before = static_cast<std::size_t>(static_cast<std::int64_t>(at) + (isReverse ? stride : -stride));
      sum = result.values[before] + (isExclusive ? x.values[before] : 0.0);
    }
    if (!isExclusive) sum += x.values[at];
  }
  return std::make_shared<const NumberArray>(std::move(result));
}

}  // namespace fuseline
