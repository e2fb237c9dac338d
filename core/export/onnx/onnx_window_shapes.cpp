// Shapes of images: convolutions, pools, and changes of their size.
// Source: github.com/onnx/onnx, docs/Operators.md; github.com/microsoft/onnxruntime, docs/ContribOperators.md.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/onnx_shape_rules.h"

#include <algorithm>

namespace fuseline::onnx_shapes {

namespace {

// ---- convolutions and pools

struct Window {
  std::vector<std::int64_t> kernel, strides, dilations, pads;
  bool isSame = false;
  bool isCeiled = false;

  static Window of(const Node& node, std::vector<std::int64_t> kernel) {
    const std::size_t rank = kernel.size();
    const auto list = [&](const char* name, std::size_t size, std::int64_t otherwise) {
      std::vector<std::int64_t> values = node.integers(name);
      values.resize(size, otherwise);
      return values;
    };
    const std::string padding = textOf(node.node(), "auto_pad", "NOTSET");
    return {.kernel = std::move(kernel),
            .strides = list("strides", rank, 1),
            .dilations = list("dilations", rank, 1),
            .pads = list("pads", 2 * rank, 0),
            .isSame = padding.starts_with("SAME"),
            .isCeiled = node.integer("ceil_mode", 0) != 0};
  }

  OnnxExtent extent(const OnnxExtent& input, std::size_t axis, OnnxFactSymbols& symbols) const {
    if (strides[axis] <= 0) return OnnxExtent::unknown();
    if (isSame) return symbols.quotient(input + OnnxExtent(strides[axis] - 1), strides[axis]);
    const std::int64_t span = dilations[axis] * (kernel[axis] - 1) + 1;
    const OnnxExtent free = input + OnnxExtent(pads[axis] + pads[axis + kernel.size()] - span);
    return symbols.quotient(free + OnnxExtent(isCeiled ? strides[axis] - 1 : 0), strides[axis]) + OnnxExtent(1);
  }
};

std::optional<std::vector<std::int64_t>> kernelOf(const Node& node, std::size_t weight) {
  std::vector<std::int64_t> kernel = node.integers("kernel_shape");
  if (!kernel.empty() || !node.shape(weight)) return kernel;
  for (std::size_t axis = 2; axis < node.shape(weight)->size(); ++axis) {
    const std::optional<std::int64_t> extent = (*node.shape(weight))[axis].number();
    if (!extent) return std::nullopt;
    kernel.push_back(*extent);
  }
  return kernel;
}

/// [N, C, ...] to [N, channels, ...].
MaybeExtents windowed(Node& node, const OnnxExtent& channels, std::optional<std::vector<std::int64_t>> kernel) {
  const MaybeExtents& x = node.shape(0);
  if (!x || !kernel || kernel->empty() || x->size() != kernel->size() + 2) return std::nullopt;
  const Window window = Window::of(node, std::move(*kernel));
  OnnxExtents shape = {(*x)[0], channels};
  for (std::size_t axis = 0; axis < window.kernel.size(); ++axis)
    shape.push_back(window.extent((*x)[axis + 2], axis, node.symbols()));
  return shape;
}

}  // namespace

void convolutionBy(Node& node, std::size_t weight) {
  const MaybeExtents &x = node.shape(0), &w = node.shape(weight);
  if (!x || !w || x->size() < 3 || w->size() != x->size()) return;
  node.symbols().equate((*x)[1], (*w)[1] * OnnxExtent(node.integer("group", 1)));
  node.setShape(0, windowed(node, (*w)[0], kernelOf(node, weight)));
}

namespace {

void convolution(Node& node) { convolutionBy(node, 1); }

void transposedConvolution(Node& node) {
  const MaybeExtents &x = node.shape(0), &w = node.shape(1);
  const auto kernel = kernelOf(node, 1);
  if (!x || !w || !kernel || kernel->empty() || x->size() != kernel->size() + 2 || w->size() < 2) return;
  const Window window = Window::of(node, *kernel);
  std::vector<std::int64_t> extra = node.integers("output_padding"), given = node.integers("output_shape");
  extra.resize(kernel->size(), 0);
  OnnxExtents shape = {(*x)[0], (*w)[1] * OnnxExtent(node.integer("group", 1))};
  for (std::size_t axis = 0; axis < kernel->size(); ++axis) {
    const OnnxExtent steps = (*x)[axis + 2] * OnnxExtent(window.strides[axis]);
    const std::int64_t rest = window.dilations[axis] * ((*kernel)[axis] - 1) + 1 - window.strides[axis] + extra[axis] -
                              window.pads[axis] - window.pads[axis + kernel->size()];
    shape.push_back(given.size() == kernel->size() ? OnnxExtent(given[axis])
                    : window.isSame                ? steps
                                                   : steps + OnnxExtent(rest));
  }
  node.setShape(0, std::move(shape));
}

void pool(Node& node) {
  if (!node.rank(0) || *node.rank(0) < 2) return;
  const OnnxExtent channels = (*node.shape(0))[1];
  for (std::size_t output = 0; output < node.numOutputs(); ++output)
    node.setShape(output, windowed(node, channels, node.integers("kernel_shape")));
  node.setType(1, Tensor::INT64);
}

void globalPool(Node& node) {
  MaybeExtents shape = node.shape(0);
  for (std::size_t axis = 2; shape && axis < shape->size(); ++axis) (*shape)[axis] = 1;
  node.setShape(0, std::move(shape));
}

/// Channels are padded to whole blocks while a tensor is in blocks; this is the way back.
void reorderOutput(Node& node) {
  MaybeExtents shape = node.shape(0);
  if (!shape || shape->size() < 3) return;
  const OnnxExtent channels = node.integer("channels", 0);
  (*shape)[1] = channels;
  if (node.integer("channels_last", 0) != 0) std::rotate(shape->begin() + 1, shape->begin() + 2, shape->end());
  node.setShape(0, std::move(shape));
}

// ---- sizes

std::optional<std::vector<float>> scalesOf(const Node& node, std::size_t index) {
  const ::onnx::AttributeProto* const attribute = findAttribute(node.node(), "scales");
  if (attribute) return std::vector<float>(attribute->floats().begin(), attribute->floats().end());
  const MaybeExtents& values = node.input(index).values;
  if (!values || values->empty()) return std::nullopt;
  std::vector<float> scales;
  for (const OnnxExtent& value : *values) {
    if (!value.number()) return std::nullopt;
    scales.push_back(static_cast<float>(*value.number()));
  }
  return scales;
}

void resize(Node& node) {
  if (!node.rank(0)) return;
  OnnxExtents shape = *node.shape(0);
  const bool isOld = node.numInputs() <= 2;  // X, scales; later: X, roi, scales, sizes
  const MaybeExtents sizes = node.input(3).values;
  const auto scales = scalesOf(node, isOld ? 1 : 2);
  std::vector<std::int64_t> axes = node.integers("axes");
  if (axes.empty())
    for (std::size_t axis = 0; axis < shape.size(); ++axis) axes.push_back(static_cast<std::int64_t>(axis));
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::optional<std::size_t> axis = axisOf(axes[i], shape.size());
    if (!axis) return;
    if (sizes && sizes->size() == axes.size())
      shape[*axis] = (*sizes)[i];
    else if (scales && scales->size() == axes.size())
      shape[*axis] = shape[*axis] * OnnxExtent(static_cast<std::int64_t>((*scales)[i]));
    else
      shape[*axis] = OnnxExtent::unknown();
  }
  node.setShape(0, std::move(shape));
}

void depthToSpace(Node& node) {
  const std::int64_t block = node.integer("blocksize", 1);
  if (node.rank(0) != 4 || block <= 0) return;
  const OnnxExtents& x = *node.shape(0);
  node.setShape(0, OnnxExtents{x[0], node.symbols().quotient(x[1], OnnxExtent(block) * OnnxExtent(block)),
                               x[2] * OnnxExtent(block), x[3] * OnnxExtent(block)});
}

void spaceToDepth(Node& node) {
  const std::int64_t block = node.integer("blocksize", 1);
  if (node.rank(0) != 4 || block <= 0) return;
  const OnnxExtents& x = *node.shape(0);
  node.setShape(0, OnnxExtents{x[0], x[1] * OnnxExtent(block) * OnnxExtent(block), node.symbols().quotient(x[2], block),
                               node.symbols().quotient(x[3], block)});
}

/// x: [N, C, ...], the places that are read: [N, ..., axes].
void gridSample(Node& node) {
  if (!node.rank(0) || !node.rank(1) || *node.rank(0) < 3 || node.rank(0) != node.rank(1)) return;
  const OnnxExtents &x = *node.shape(0), &places = *node.shape(1);
  OnnxExtents shape = {x[0], x[1]};
  shape.insert(shape.end(), places.begin() + 1, places.end() - 1);
  node.setShape(0, std::move(shape));
}

}  // namespace

OnnxShapeRules windowShapes() {
  return {
      {convolution, "Conv FusedConv"},
      {depthToSpace, "DepthToSpace"},
      {globalPool, "GlobalAveragePool GlobalLpPool GlobalMaxPool"},
      {gridSample, "GridSample"},
      {pool, "AveragePool LpPool MaxPool"},
      {reorderOutput, "ReorderOutput"},
      {resize, "Resize Upsample"},
      {sameAsFirst, "ReorderInput"},
      {spaceToDepth, "SpaceToDepth"},
      {transposedConvolution, "ConvTranspose"},
  };
}

}  // namespace fuseline::onnx_shapes
