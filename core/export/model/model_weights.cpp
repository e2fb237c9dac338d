// Joins, transposes and reorders stored tensors as the parameters need them.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/model/model_weights.h"

#include "core/export/model/mxfp4_weights.h"
#include "core/export/model/weight_files.h"
#include "core/export/model/weight_orders.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace fuseline {

namespace {

/// Ends of the names of the two tensors that hold one in MXFP4.
constexpr const char* kBlocks = "_blocks";
constexpr const char* kScales = "_scales";

using Specs = std::map<std::string, TensorSpec, std::less<>>;

Specs parameterSpecs(const Graph& graph) {
  Specs specs;
  for (const Node& node : graph.nodes())
    for (int slot = 0; slot < static_cast<int>(node.parameters.size()); ++slot)
      specs.emplace(node.parameterName(slot), node.parameters[static_cast<std::size_t>(slot)]);
  return specs;
}

/// "{}" is the number of the layer.
std::string named(const std::string& pattern, std::size_t layer) { return withNumber(pattern, "{}", layer); }

bool isOfLayers(const WeightSource& source) { return source.parameter.find("{}") != std::string::npos; }

class WeightReader {
 public:
  WeightReader(const ModelForm& form, const Graph& graph, WeightFiles files)
      : m_form(form), m_specs(parameterSpecs(graph)), m_files(std::move(files)) {}

  Result<ModelWeights> read() && {
    for (const WeightSource& source : m_form.weights) {
      const std::size_t count = isOfLayers(source) ? m_form.layers.size() : 1;
      for (std::size_t layer = 0; layer < count; ++layer)
        if (hasIt(source, layer))
          if (auto error = add(source, layer)) return *error;
    }
    if (!m_rounded.empty())
      m_weights.notes.push_back(
          fmt::format("The weights are {} in the files and were rounded to {}.", m_rounded, dtypeName(m_form.dtype)));
    return std::move(m_weights);
  }

 private:
  bool hasIt(const WeightSource& source, std::size_t layer) const {
    if (source.layers == WeightSource::Layers::All) return true;
    const bool hasExperts = m_form.hasExperts(m_form.kinds[m_form.layers[layer]]);
    return hasExperts == (source.layers == WeightSource::Layers::OfExperts);
  }

  std::optional<Error> add(const WeightSource& source, std::size_t layer) {
    const std::string parameter = named(source.parameter, layer);
    const auto spec = m_specs.find(parameter);
    if (spec == m_specs.end()) return Error{fmt::format("{} is not a parameter of the pipeline.", parameter)};
    Tensor whole{.spec = {.dtype = spec->second.dtype, .shape = {}}, .data = {}};
    const Result<std::vector<std::string>> names = namesOf(source, layer, spec->second.shape);
    if (!names) return names.error();
    for (const std::string& name : *names) {
      Result<Tensor> part = partOf(source, name);
      if (!part) return part.error();
      if (!source.shape.empty() && part->spec.shape != source.shape)
        return wrongShape(parameter, name, part->spec.shape, source.shape);
      if (source.first) {
        const std::int64_t rows = spec->second.shape.empty() ? 1 : spec->second.shape.front();
        if (rows > source.shape.front() - *source.first)
          return wrongShape(parameter, name, source.shape, spec->second.shape);
        part = rowsOf(*part, *source.first, rows);
      } else if (!source.shape.empty()) {
        part->spec.shape = {part->spec.numElements()};
      }
      if (auto error = append(std::move(*part), whole)) return Error{fmt::format("{}: {}", parameter, error->message)};
    }
    if (names->size() > 1 && source.order == WeightSource::Order::Experts)
      divideExperts(spec->second.shape.front(), whole.spec.shape);
    if (!source.shape.empty() && whole.spec.numElements() == spec->second.numElements())
      whole.spec.shape = spec->second.shape;
    if (whole.spec.shape != spec->second.shape)
      return wrongShape(parameter, names->front() + (names->size() > 1 ? " and the tensors concatenated with it" : ""),
                        whole.spec.shape, spec->second.shape);
    if (source.order == WeightSource::Order::HeadsTogether) whole = withHeadsTogether(whole, m_form.heads);
    m_weights.tensors.emplace_back(parameter, std::move(whole));
    return std::nullopt;
  }

  static Error wrongShape(const std::string& parameter, const std::string& tensor, const Shape& found,
                          const Shape& expected) {
    return {
        fmt::format("{}: the tensor {} is {}, but the pipeline needs {}. Are these the weights of the config's "
                    "model?",
                    parameter, tensor, toString(found), toString(expected))};
  }

  /// The tensors to join. With a tensor an expert: those of one expert after another.
  Result<std::vector<std::string>> namesOf(const WeightSource& source, std::size_t layer, const Shape& parameter) {
    std::vector<std::string> names;
    const bool isByExpert = source.order == WeightSource::Order::Experts;
    if (isByExpert) {
      const std::string together = named(source.together, layer);
      const Result<bool> isTogether = m_files.contains(together);
      if (!isTogether) return isTogether.error();
      if (*isTogether) return std::vector{together};
    }
    for (std::int64_t expert = 0; expert < (isByExpert ? parameter.front() : 1); ++expert)
      for (const std::string& pattern : source.tensors)
        names.push_back(withNumber(named(pattern, layer), kExpertMark, static_cast<std::size_t>(expert)));
    return names;
  }

  /// [E rows, ..] becomes [E, rows, ..]; other shapes stay.
  static void divideExperts(std::int64_t numExperts, Shape& shape) {
    if (shape.front() % numExperts != 0) return;
    shape.front() /= numExperts;
    shape.insert(shape.begin(), numExperts);
  }

  Result<Tensor> partOf(const WeightSource& source, const std::string& name) {
    const Result<bool> isPacked = m_files.contains(name + kBlocks);
    if (!isPacked) return isPacked.error();
    if (*isPacked) return unpacked(source, name);
    Result<Tensor> part = m_files.read(name);
    if (!part) return part;
    if (!isFloat(part->spec.dtype))
      return Error{fmt::format("tensor {} is {}; expected f32, f16 or bf16. Import a model that is not quantized.",
                               name, dtypeName(part->spec.dtype))};
    const bool isPaired = source.order == WeightSource::Order::PairsApart;
    if (source.order != WeightSource::Order::Transposed && !isPaired) return part;
    if (part->spec.shape.size() < 2)
      return Error{fmt::format("tensor {} has the shape {}; expected two axes.", name, toString(part->spec.shape))};
    const bool isBias = isPaired && part->spec.shape.size() == 2;
    if (!isBias) *part = transposed(*part);
    if (!isPaired) return part;
    if (part->spec.shape[1] % 2 != 0)
      return Error{
          fmt::format("tensor {} has {} rows per expert; expected an even number.", name, part->spec.shape[1])};
    return withPairsApart(*part);
  }

  /// In files with MXFP4, [E, out, in], what others have transposed.
  Result<Tensor> unpacked(const WeightSource& source, const std::string& name) {
    const Result<Tensor> blocks = m_files.read(name + kBlocks);
    if (!blocks) return blocks.error();
    const Result<Tensor> scales = m_files.read(name + kScales);
    if (!scales) return scales.error();
    Result<Tensor> part = decodedMxfp4(name, *blocks, *scales);
    if (!part || source.order != WeightSource::Order::PairsApart) return part;
    const Shape& shape = part->spec.shape;
    if (shape.size() < 2 || shape[1] % 2 != 0)
      return Error{
          fmt::format("tensor {} has the shape {}; expected pairs of rows for each expert.", name, toString(shape))};
    return withPairsApart(*part);
  }

  /// Joins along the first axis, in the dtype of the parameter.
  std::optional<Error> append(Tensor part, Tensor& whole) {
    if (part.spec.shape.empty()) part.spec.shape = {1};
    if (part.spec.dtype != whole.spec.dtype) {
      if (whole.spec.dtype == m_form.dtype) m_rounded = dtypeName(part.spec.dtype);
      part = Tensor::fromDoubles({whole.spec.dtype, part.spec.shape}, part.toDoubles());
    }
    if (whole.spec.shape.empty()) {
      whole = std::move(part);
      return std::nullopt;
    }
    if (!std::equal(part.spec.shape.begin() + 1, part.spec.shape.end(), whole.spec.shape.begin() + 1,
                    whole.spec.shape.end()))
      return Error{fmt::format("tensors of the shapes {} and {} cannot be concatenated along the first axis.",
                               toString(whole.spec.shape), toString(part.spec.shape))};
    whole.spec.shape.front() += part.spec.shape.front();
    whole.data.insert(whole.data.end(), part.data.begin(), part.data.end());
    return std::nullopt;
  }

  const ModelForm& m_form;
  Specs m_specs;
  WeightFiles m_files;
  ModelWeights m_weights;
  std::string m_rounded;  // the dtype in the files, where it is another
};

}  // namespace

Result<ModelWeights> readModelWeights(const ModelForm& form, const Graph& graph, const std::filesystem::path& path) {
  Result<WeightFiles> files = WeightFiles::open(path);
  if (!files) return files.error();
  return WeightReader(form, graph, std::move(*files)).read();
}

}  // namespace fuseline
