// OnnxViews: which elements of another tensor a tensor of an ONNX graph has, behind nodes that only move elements.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/onnx_numbers.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace fuseline {

/// Elements that lie `stride` apart in the base; 0: one element is repeated.
struct ViewFactor {
  std::int64_t extent = 1;
  std::int64_t stride = 0;
  bool operator==(const ViewFactor&) const = default;
};
/// Outermost first; an axis of extent 1 has none. More than one where a reshape has merged axes.
using ViewFactors = std::vector<ViewFactor>;

struct OnnxView {
  std::string base;
  std::int64_t offset = 0;
  std::vector<ViewFactors> axes;
  double factor = 1.0;  // of each element
};

std::int64_t extentOf(const ViewFactors& axis);
/// Those of a tensor that is stored whole; extents of 1 have none.
std::vector<ViewFactors> denseAxes(const Shape& extents);
/// The same factors cut to these extents. Nothing: a factor does not divide.
std::optional<std::vector<ViewFactors>> regrouped(const ViewFactors& factors, const Shape& extents);

/// Numbers of symbols are at least this, and other extents less.
inline constexpr std::int64_t kLeastPrime = 10007;

/// Extents of symbols are numbers here, by symbols(): large primes tell extents apart that differ.
class OnnxViews {
 public:
  /// Both must outlive it.
  OnnxViews(const OnnxReading& reading, OnnxNumbers& numbers) : m_reading(reading), m_numbers(numbers) {}

  /// With the numbers of its symbols. Nothing: the graph does not say them all.
  std::optional<Shape> extents(const std::string& tensor) const;
  /// The tensor itself where nothing is known of its maker. Nothing: its extents are not known.
  std::optional<OnnxView> of(const std::string& tensor);
  /// Behind factors, too.
  std::optional<OnnxView> ofScaled(const std::string& tensor);
  /// The number that a symbol has here.
  std::int64_t numberOf(const std::string& symbol) const;
  /// From now on the tensor is this view.
  void set(const std::string& tensor, OnnxView view) { m_views[tensor] = std::move(view); }
  /// For a tensor that is new in the graph.
  void setExtents(const std::string& tensor, Shape extents) { m_extents[tensor] = std::move(extents); }

 private:
  std::optional<OnnxView> find(const std::string& tensor, bool passesScale, int depth);
  std::optional<OnnxView> moved(const ::onnx::NodeProto& node, const std::string& tensor, bool passesScale, int depth);
  bool slice(const ::onnx::NodeProto& node, OnnxView& view) const;
  bool split(const ::onnx::NodeProto& node, const std::string& tensor, OnnxView& view) const;
  bool gather(const ::onnx::NodeProto& node, OnnxView& view) const;

  const OnnxReading& m_reading;
  OnnxNumbers& m_numbers;
  std::map<std::string, OnnxView> m_views;
  std::map<std::string, Shape> m_extents;
  mutable std::map<std::string, std::int64_t> m_symbols;  // of symbols
};

}  // namespace fuseline
