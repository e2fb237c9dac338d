// OnnxNumbers: tensors of an ONNX graph that follow from its constants and extents: masks, tables of angles.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/onnx_reading.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fuseline {

/// Row-major. Booleans are 0 and 1.
struct NumberArray {
  Shape shape;
  std::vector<double> values;
};

class OnnxNumbers {
 public:
  /// symbols: the extent that each stands for. folder: where files of external data stand.
  OnnxNumbers(const OnnxReading& reading, std::map<std::string, std::int64_t> symbols, std::filesystem::path folder);

  /// nullptr: it depends on an input, on a node that is not known here, or is large.
  std::shared_ptr<const NumberArray> of(const std::string& tensor);
  /// The value of a tensor with one element, if it is the same at other extents.
  std::optional<double> number(const std::string& tensor);
  /// Takes these as the numbers of a tensor, whatever computes it.
  void give(const std::string& tensor, NumberArray numbers) {
    m_known[m_reading.source(tensor)] = std::make_shared<const NumberArray>(std::move(numbers));
  }
  /// Nothing where the graph does not say it.
  std::optional<Shape> extents(const std::string& tensor) const;
  /// The same graph with every symbol twice as large, or three times where another has its value, and so on: values
  /// that follow from extents differ. nullptr: it has no symbols.
  OnnxNumbers* atOtherExtents();

 private:
  using Array = std::shared_ptr<const NumberArray>;
  Array find(const std::string& tensor, int depth);
  Array compute(const ::onnx::NodeProto& node, const std::string& output, int depth);
  Array constant(const ::onnx::TensorProto& tensor) const;

  const OnnxReading& m_reading;
  std::map<std::string, std::int64_t> m_symbols;
  std::filesystem::path m_folder;
  std::map<std::string, Array> m_known;
  std::unique_ptr<OnnxNumbers> m_other;
  bool m_isOther = false;
};

/// Nothing: they do not fit together, or there would be very many elements.
std::optional<Shape> broadcastShape(const Shape& a, const Shape& b);
/// The element of an array that is broadcast to these extents, by a place among them.
double broadcastAt(const NumberArray& array, const Shape& extents, std::int64_t place);

}  // namespace fuseline
