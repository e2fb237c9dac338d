// Sums and differences of products with tables that are known.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/onnx_rotary_parts.h"

#include "core/export/onnx/import/rotary_fit.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

namespace fuseline {

namespace {

constexpr int kMostSteps = 16;
constexpr double kCoarsest = 0.02;

/// Half the step of numbers that were quantized to 8 bits; 0: they have no common step.
double roundingOf(const NumberArray& table) {
  constexpr std::size_t kFewest = 8, kMost = 256;
  std::set<double> distinct;
  for (const double value : table.values)
    if (!std::isfinite(value) || (distinct.insert(value).second && distinct.size() > kMost)) return 0.0;
  if (distinct.size() < kFewest) return 0.0;
  double gap = *distinct.rbegin() - *distinct.begin();
  for (auto value = std::next(distinct.begin()); value != distinct.end(); ++value)
    gap = std::min(gap, *value - *std::prev(value));
  double step = gap;
  const auto isOnGrid = [&](double value) {
    const double steps = (value - *distinct.begin()) / step;
    return std::abs(steps - std::round(steps)) < 1e-3 && steps < kMost;
  };
  // Neighbors in the table may be several steps apart.
  for (int parts = 1; parts <= kMostSteps; step = gap / ++parts)
    if (std::ranges::all_of(distinct, isOnGrid)) return step < kCoarsest ? step / 2.0 : 0.0;
  return 0.0;
}

/// A product of a tensor and numbers that are known.
struct ByTable {
  std::string tensor;
  std::shared_ptr<const NumberArray> table;
  std::string name;
};

class RotarySearch {
 public:
  RotarySearch(const OnnxReading& reading, OnnxViews& views, OnnxNumbers& numbers)
      : m_reading(reading), m_views(views), m_numbers(numbers) {}

  /// x cos + turned(x) sin.
  std::optional<RotaryParts> inSum(const ::onnx::NodeProto& sum) {
    if (sum.input_size() != 2) return std::nullopt;
    for (const int first : {0, 1}) {
      const auto straight = byTable(sum.input(first)), turned = byTable(sum.input(1 - first));
      if (!straight || !turned) return std::nullopt;
      const auto view = m_views.of(straight->tensor);
      if (!view || view->axes.empty() || view->axes.back().size() != 1) continue;
      if (const auto isInterleaved = turnOf(*view, turned->tensor))
        return parts(*view, *straight, *turned, *isInterleaved, sum.output(0));
    }
    return std::nullopt;
  }

  /// First x cos - y sin, then y cos + x sin, for the halves x and y of a head.
  std::optional<RotaryParts> inHalves(const ::onnx::NodeProto& concat) {
    if (concat.input_size() != 2 || m_reading.axisFromEnd(concat.output(0), integerOf(concat, "axis", 0)) != -1)
      return std::nullopt;
    const auto *const difference = m_reading.makerOf("Sub", concat.input(0)), *const sum = m_reading.makerOf(
                                                                                  "Add", concat.input(1));
    const auto xCos = difference ? byTable(inputOf(*difference, 0)) : std::nullopt,
               ySin = difference ? byTable(inputOf(*difference, 1)) : std::nullopt;
    if (!xCos || !ySin || !sum || !areProducts(*sum, {ySin->tensor, xCos->table, {}}, {xCos->tensor, ySin->table, {}}))
      return std::nullopt;
    auto x = m_views.of(xCos->tensor);
    const auto y = m_views.of(ySin->tensor);
    if (!x || !y || x->axes.empty() || x->axes.size() != y->axes.size() || x->axes.back().size() != 1)
      return std::nullopt;
    ViewFactor& last = x->axes.back().front();
    const bool goesOn = y->base == x->base && y->axes == x->axes && y->offset == x->offset + last.extent * last.stride;
    const auto tokens = axisOfTokens(*xCos->table, x->axes.size());
    if (!goesOn || !tokens || axisOfTokens(*ySin->table, x->axes.size()) != tokens ||
        xCos->table->shape != ySin->table->shape || xCos->table->shape.back() != last.extent)
      return std::nullopt;
    AngleTable table = narrowTable(*xCos, *ySin, *tokens - (x->axes.size() - xCos->table->shape.size()));
    last.extent *= 2;
    RotaryParts found{.x = *x, .tokens = *tokens, .output = concat.output(0)};
    found.attributes["interleaved"] = false;
    setWidth(found, last.extent);
    return fitRotary(found.attributes, table) ? std::optional(std::move(found)) : std::nullopt;
  }

  /// Rotated channels, then those that pass.
  std::optional<RotaryParts> partial(const ::onnx::NodeProto& concat) {
    if (concat.input_size() != 2 || m_reading.axisFromEnd(concat.output(0), integerOf(concat, "axis", 0)) != -1)
      return std::nullopt;
    const auto* const sum = m_reading.makerOf("Add", concat.input(0));
    auto found = sum ? inSum(*sum) : std::nullopt;
    const auto rest = found ? m_views.of(concat.input(1)) : std::nullopt;
    if (!rest || rest->base != found->x.base || rest->axes.size() != found->x.axes.size()) return std::nullopt;
    ViewFactors& last = found->x.axes.back();
    const ViewFactors& restLast = rest->axes.back();
    const std::int64_t R = extentOf(last);
    const bool goesOn = restLast.size() == 1 && last.size() == 1 && restLast.front().stride == last.front().stride &&
                        rest->offset == found->x.offset + R * last.front().stride &&
                        std::equal(rest->axes.begin(), rest->axes.end() - 1, found->x.axes.begin());
    if (!goesOn) return std::nullopt;
    last.front().extent = R + restLast.front().extent;
    setWidth(*found, R);
    found->output = concat.output(0);
    return found;
  }

  /// The op of opset 23, and that of ONNX Runtime, which has its inputs in another order.
  std::optional<RotaryParts> whole(const ::onnx::NodeProto& node) {
    const bool isMicrosoft = node.domain() == "com.microsoft";
    const std::string &ids = inputOf(node, isMicrosoft ? 1 : 3), &cos = inputOf(node, isMicrosoft ? 2 : 1),
                      &sin = inputOf(node, isMicrosoft ? 3 : 2);
    if (realOf(node, "scale", 1.0) != 1.0 || integerOf(node, "is_packed_batching", 0) != 0) return std::nullopt;
    auto view = m_views.of(inputOf(node, 0));
    const auto cosines = m_numbers.of(cos), sines = m_numbers.of(sin);
    if (!view || !cosines || !sines || cosines->shape != sines->shape || cosines->shape.empty()) return std::nullopt;
    std::int64_t heads = integerOf(node, "num_heads", 0);
    const std::int64_t pairs = cosines->shape.back(), rotated = 2 * pairs;
    std::size_t tokens = 2;
    if (view->axes.size() == 3) {
      const std::int64_t width = extentOf(view->axes[2]);
      if (heads == 0 && integerOf(node, "rotary_embedding_dim", 0) == 0 && rotated > 0) heads = width / rotated;
      const auto columns =
          heads > 0 && width % heads == 0 ? regrouped(view->axes[2], {heads, width / heads}) : std::nullopt;
      if (!columns) return std::nullopt;
      view->axes = {view->axes[0], view->axes[1], (*columns)[0], (*columns)[1]};
      tokens = 1;
    }
    if (view->axes.size() != 4 || view->axes.back().size() != 1) return std::nullopt;
    AngleTable table{.pairs = pairs, .tolerance = toleranceOf(cos)};
    const auto positions = ids.empty() ? nullptr : m_numbers.of(ids);
    if (!ids.empty() && (!positions || cosines->shape.size() != 2)) return std::nullopt;
    if (!readRows(*cosines, *sines, positions.get(), inputOf(node, 0), tokens, table)) return std::nullopt;
    RotaryParts found{.x = *view, .tokens = tokens, .output = node.output(0)};
    found.attributes["interleaved"] = integerOf(node, "interleaved", 0) != 0;
    setWidth(found, rotated);
    return fitRotary(found.attributes, table) ? std::optional(std::move(found)) : std::nullopt;
  }

 private:
  std::optional<ByTable> byTable(const std::string& tensor) {
    const auto* const node = m_reading.makerOf("Mul", tensor);
    if (!node) return std::nullopt;
    for (const int table : {1, 0}) {
      const auto numbers = m_numbers.of(inputOf(*node, table));
      if (numbers && numbers->values.size() > 1)
        return ByTable{inputOf(*node, 1 - table), numbers, inputOf(*node, table)};
    }
    return std::nullopt;
  }

  /// Are these the terms of the sum, in any order?
  bool areProducts(const ::onnx::NodeProto& sum, const ByTable& one, const ByTable& other) {
    const auto isProduct = [&](const std::string& tensor, const ByTable& wanted) {
      const auto found = byTable(tensor);
      return found && m_reading.source(found->tensor) == m_reading.source(wanted.tensor) &&
             found->table->shape == wanted.table->shape && found->table->values == wanted.table->values;
    };
    return (isProduct(inputOf(sum, 0), one) && isProduct(inputOf(sum, 1), other)) ||
           (isProduct(inputOf(sum, 0), other) && isProduct(inputOf(sum, 1), one));
  }

  /// Each pair has its cosine and sine once. axis: of the rows.
  AngleTable narrowTable(const ByTable& cosines, const ByTable& sines, std::size_t axis) const {
    const Shape& shape = cosines.table->shape;
    AngleTable table{.rows = shape[axis],
                     .pairs = shape.back(),
                     .tolerance = toleranceOf(cosines.name),
                     .rounding = std::max(roundingOf(*cosines.table), roundingOf(*sines.table))};
    std::int64_t stride = 1;
    for (std::size_t i = axis + 1; i < shape.size(); ++i) stride *= shape[i];
    for (std::int64_t row = 0; row < table.rows; ++row)
      for (std::int64_t m = 0; m < table.pairs; ++m) {
        table.cosines.push_back(cosines.table->values[static_cast<std::size_t>(row * stride + m)]);
        table.sines.push_back(sines.table->values[static_cast<std::size_t>(row * stride + m)]);
      }
    return table;
  }

  std::optional<std::string> negated(const std::string& tensor) const {
    const auto* const node = m_reading.makerOf("Neg", tensor);
    return node ? std::optional(inputOf(*node, 0)) : std::nullopt;
  }

  /// Is the tensor x with its pairs exchanged, the first of them negative? True where pairs are neighbors.
  std::optional<bool> turnOf(const OnnxView& x, const std::string& tensor) {
    const auto* node = m_reading.maker(tensor);
    const bool isReshaped = node && (node->op_type() == "Reshape" || node->op_type() == "Flatten");
    if (isReshaped) node = m_reading.maker(inputOf(*node, 0));
    if (!node || node->op_type() != "Concat" || node->input_size() != 2) return std::nullopt;
    if (m_reading.axisFromEnd(node->output(0), integerOf(*node, "axis", 0)) != -1) return std::nullopt;
    std::string minus = node->input(0), plain = node->input(1);
    if (isReshaped) {
      for (std::string* const name : {&minus, &plain}) {
        const auto* const column = m_reading.maker(*name);
        const bool isColumn = column && (column->op_type() == "Unsqueeze" || column->op_type() == "Reshape");
        if (!isColumn) return std::nullopt;
        *name = inputOf(*column, 0);
      }
    }
    const auto second = negated(minus);
    const auto u = second ? m_views.of(*second) : std::nullopt, w = m_views.of(plain);
    if (!u || !w) return std::nullopt;
    const ViewFactor all = x.axes.back().front();
    const ViewFactor half = {all.extent / 2, isReshaped ? 2 * all.stride : all.stride};
    const std::int64_t distance = isReshaped ? all.stride : half.extent * all.stride;
    const auto isPart = [&](const OnnxView& part, std::int64_t offset) {
      if (part.base != x.base || part.offset != offset || part.axes.size() != x.axes.size()) return false;
      const ViewFactors last = half.extent == 1 ? ViewFactors() : ViewFactors{half};
      return part.axes.back() == last && std::equal(part.axes.begin(), part.axes.end() - 1, x.axes.begin());
    };
    const bool isTurn = all.extent % 2 == 0 && isPart(*w, x.offset) && isPart(*u, x.offset + distance);
    return isTurn ? std::optional(isReshaped) : std::nullopt;
  }

  double toleranceOf(const std::string& table) const {
    const std::optional<DType> dtype = floatTypeOf(m_reading.elementType(table));
    return dtype == DType::BF16 ? 8e-3 : dtype == DType::F16 ? 1e-3 : 3e-6;
  }

  std::optional<RotaryParts> parts(const OnnxView& x, const ByTable& straight, const ByTable& turned,
                                   bool isInterleaved, const std::string& output) {
    const std::int64_t R = extentOf(x.axes.back());
    const NumberArray &cosines = *straight.table, &sines = *turned.table;
    const auto tokens = axisOfTokens(cosines, x.axes.size());
    if (!tokens || axisOfTokens(sines, x.axes.size()) != tokens) return std::nullopt;
    if (cosines.shape != sines.shape || cosines.shape.back() != R) return std::nullopt;
    const std::size_t missing = x.axes.size() - cosines.shape.size();
    AngleTable table{.rows = cosines.shape[*tokens - missing],
                     .pairs = R / 2,
                     .tolerance = toleranceOf(straight.name),
                     .rounding = std::max(roundingOf(cosines), roundingOf(sines))};
    if (!readWide(cosines, sines, *tokens - missing, isInterleaved, table)) return std::nullopt;
    RotaryParts found{.x = x, .tokens = *tokens, .output = output};
    found.attributes["interleaved"] = isInterleaved;
    setWidth(found, R);
    return fitRotary(found.attributes, table) ? std::optional(std::move(found)) : std::nullopt;
  }

  static void setWidth(RotaryParts& found, std::int64_t rotated) {
    const std::int64_t D = extentOf(found.x.axes.back());
    found.attributes["dim"] = D;
    if (rotated != D) found.attributes["rotary_percent"] = static_cast<double>(rotated) / static_cast<double>(D);
  }

  /// The axis of x along which the table varies.
  static std::optional<std::size_t> axisOfTokens(const NumberArray& table, std::size_t rank) {
    if (table.shape.size() > rank || table.shape.size() < 2) return std::nullopt;
    std::optional<std::size_t> axis;
    std::int64_t stride = 1;
    for (std::size_t i = table.shape.size(); i-- > 0; stride *= table.shape[i]) {
      if (i + 1 == table.shape.size() || table.shape[i] == 1) continue;
      bool varies = false;
      for (std::size_t at = 0; at < table.values.size() && !varies; ++at) {
        const auto index = static_cast<std::int64_t>(at) / stride % table.shape[i];
        varies = index > 0 && table.values[at] != table.values[at - static_cast<std::size_t>(index * stride)];
      }
      if (!varies) continue;
      if (axis) return std::nullopt;
      axis = i + (rank - table.shape.size());
    }
    return axis;
  }

  /// Each pair has its cosine and sine twice.
  static bool readWide(const NumberArray& cosines, const NumberArray& sines, std::size_t axis, bool isInterleaved,
                       AngleTable& table) {
    std::int64_t stride = 1;
    for (std::size_t i = axis + 1; i < cosines.shape.size(); ++i) stride *= cosines.shape[i];
    const std::int64_t step = isInterleaved ? 2 : 1, other = isInterleaved ? 1 : table.pairs;
    for (std::int64_t row = 0; row < table.rows; ++row)
      for (std::int64_t m = 0; m < table.pairs; ++m) {
        const auto at = static_cast<std::size_t>(row * stride + m * step), twin = at + static_cast<std::size_t>(other);
        if (cosines.values[at] != cosines.values[twin] || sines.values[at] != sines.values[twin]) return false;
        table.cosines.push_back(cosines.values[at]);
        table.sines.push_back(sines.values[at]);
      }
    return true;
  }

  /// [positions, pairs] by the numbers of the rows, or [B, S, pairs] as they are.
  bool readRows(const NumberArray& cosines, const NumberArray& sines, const NumberArray* positions,
                const std::string& x, std::size_t tokens, AngleTable& table) const {
    const auto shape = m_numbers.extents(x);
    if (!shape || shape->size() <= tokens) return false;
    const std::int64_t S = (*shape)[tokens], B = shape->front();
    const std::int64_t rowsOfTable = numElements(cosines.shape) / std::max<std::int64_t>(1, table.pairs);
    const auto rowAt = [&](std::int64_t entry, std::int64_t token) {
      if (!positions) return (entry * S + token) % std::max<std::int64_t>(1, rowsOfTable);
      const auto count = static_cast<std::int64_t>(positions->values.size());
      if (count == 1) return static_cast<std::int64_t>(positions->values.front()) + token;  // of the first token
      return count == 0
                 ? std::int64_t{-1}
                 : static_cast<std::int64_t>(positions->values[static_cast<std::size_t>((entry * S + token) % count)]);
    };
    const auto isSameRow = [&](std::int64_t a, std::int64_t b) {
      const auto isSameIn = [&](const std::vector<double>& values) {
        return std::equal(values.begin() + a * table.pairs, values.begin() + (a + 1) * table.pairs,
                          values.begin() + b * table.pairs);
      };
      return a == b || (isSameIn(cosines.values) && isSameIn(sines.values));
    };
    table.rows = S;
    for (std::int64_t entry = 0; entry < B; ++entry)
      for (std::int64_t token = 0; token < S; ++token) {
        const std::int64_t row = rowAt(entry, token);
        if (row < 0 || row >= rowsOfTable || !isSameRow(row, rowAt(0, token))) return false;
        for (std::int64_t m = 0; m < table.pairs && entry == 0; ++m) {
          table.cosines.push_back(cosines.values[static_cast<std::size_t>(row * table.pairs + m)]);
          table.sines.push_back(sines.values[static_cast<std::size_t>(row * table.pairs + m)]);
        }
      }
    return true;
  }

  const OnnxReading& m_reading;
  OnnxViews& m_views;
  OnnxNumbers& m_numbers;
};

}  // namespace

std::optional<RotaryParts> rotaryAt(const OnnxReading& reading, OnnxViews& views, OnnxNumbers& numbers,
                                    const ::onnx::NodeProto& node) {
  RotarySearch search(reading, views, numbers);
  if (node.output_size() == 0) return std::nullopt;
  if (node.op_type() == "RotaryEmbedding") return search.whole(node);
  if (!node.domain().empty() && node.domain() != "ai.onnx") return std::nullopt;
  if (node.op_type() == "Concat") {
    auto partial = search.partial(node);
    return partial ? partial : search.inHalves(node);
  }
  return node.op_type() == "Add" ? search.inSum(node) : std::nullopt;
}

}  // namespace fuseline
