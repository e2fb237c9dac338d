// Each is a call of torch.nn.functional.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/te/te_model_ends.h"

#include "core/export/te/python_text.h"
#include "core/export/te/te_operation.h"
#include "core/ops/cross_entropy_form.h"
#include "core/ops/embedding_form.h"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

std::string indented(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& each : lines) text += "        " + each + "\n";
  return text;
}

std::vector<std::string> embeddingConstructor(const Node& node) {
  const TensorSpec& weight = node.parameters.front();
  const double bound = node.operation->parameters.front().initialise(node.attributes, weight).value;
  return {fmt::format("weight = torch.empty({}, {}, dtype={}, device=device)", weight.shape[0], weight.shape[1],
                      torchType(weight.dtype)),
          fmt::format("self.weight = torch.nn.Parameter(weight.uniform_(-{0}, {0}))", pythonNumber(bound))};
}

std::vector<std::string> embeddingForward(const Node& node) {
  const EmbeddingForm form = embeddingForm(node.attributes);
  std::vector<std::string> lines;
  if (form.usesPositions) lines.emplace_back("x = torch.arange(x.shape[-1], device=x.device).expand(x.shape)");
  const std::string padding = form.paddingIndex ? fmt::format(", padding_idx={}", *form.paddingIndex) : "";
  lines.push_back(fmt::format("y = torch.nn.functional.embedding(x, self.weight{})", padding));
  lines.emplace_back(form.sharesWeight ? "return y, self.weight" : "return y");
  return lines;
}

std::vector<std::string> lossForward(const Node& node) {
  const CrossEntropyForm form = crossEntropyForm(node.attributes);
  const std::string& reduction = node.attributes.text("reduction");
  const bool isByRow = form.reduction == LossReduction::None;
  std::vector<std::string> lines = {"rows = x.float().reshape(-1, x.shape[-1])", "labels = target.reshape(-1)",
                                    "loss = torch.nn.functional.cross_entropy(",
                                    fmt::format("    rows, labels, ignore_index={}, reduction={}, label_smoothing={}",
                                                form.ignoreIndex, pythonText(reduction), pythonNumber(form.smoothing)),
                                    ")"};
  if (form.lseSquareScale > 0.0) {
    lines.push_back(fmt::format("counts = labels != {}", form.ignoreIndex));
    lines.push_back(
        fmt::format("z = {} * torch.logsumexp(rows, -1).square() * counts", pythonNumber(form.lseSquareScale)));
    lines.emplace_back(isByRow                                ? "loss = loss + z"
                       : form.reduction == LossReduction::Sum ? "loss = loss + z.sum()"
                                                              : "loss = loss + z.sum() / counts.sum()");
  }
  lines.emplace_back(isByRow ? "return loss.reshape(target.shape)" : "return loss");
  return lines;
}

}  // namespace

bool isModelEnd(const Node& node) {
  constexpr std::array kNames = {"Embedding", "TiedLinear", "CrossEntropy"};
  return std::ranges::find(kNames, node.operation->name) != kNames.end();
}

std::string modelEndModule(const Node& node, const std::string& className) {
  const std::string& name = node.operation->name;
  std::vector<std::string> constructor, forward = {"return torch.nn.functional.linear(x, weight)"};
  if (name == "Embedding") {
    constructor = embeddingConstructor(node);
    forward = embeddingForward(node);
  }
  if (name == "CrossEntropy") forward = lossForward(node);
  std::vector<std::string> arguments;
  for (const Port& port : node.operation->inputs) arguments.push_back(port.name);
  return fmt::format(
      "class {}(torch.nn.Module):\n    \"\"\"{}: {}\"\"\"\n\n    def __init__(self, device):\n        "
      "super().__init__()\n{}\n    def forward(self, {}):\n{}",
      className, docText(node.id), docText(node.operation->formula), indented(constructor), fmt::join(arguments, ", "),
      indented(forward));
}

}  // namespace fuseline
