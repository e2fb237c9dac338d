// Draws pipelines of up to a dozen kinds of ops, with branches.
// SPDX-License-Identifier: Apache-2.0
#include "tests/support/random_pipelines.h"

#include "core/ops/catalog.h"
#include "core/ops/parameters.h"

#include <string>
#include <utility>

#include <rapidcheck.h>

namespace fuseline::testing {

namespace {

std::string extraSource(const std::vector<std::string>& branches) {
  const auto choice = *rc::gen::inRange<std::size_t>(0, branches.size() + 1);
  return choice < branches.size() ? branches[choice] : "";
}

Link randomAdd(const std::string& id, const std::vector<std::string>& branches) {
  const Link add = inPlace(link("AddExtraInput", id, extraSource(branches)), *rc::gen::arbitrary<bool>());
  return *rc::gen::arbitrary<bool>() ? swapped(add) : add;
}

/// Some have frozen parameters; some linears add their gradients to a main_grad buffer.
Link randomlyTrained(Link link) {
  const FusibleOperation& operation = *builtinOperations().find(link.operation);
  for (const ParameterSpec& parameter : operation.parameters) {
    if (*rc::gen::inRange(0, 5) == 0) link = with(std::move(link), requiresGradName(parameter.name), false);
    if (parameter.hasMainGrad && *rc::gen::inRange(0, 5) == 0)
      link = with(std::move(link), "accumulate_into_main_grad", true);
  }
  return link;
}

/// Some offload tensors for backward to the host's memory.
Link randomlyOffloaded(Link link) {
  const bool mayOffload = builtinOperations().find(link.operation)->attribute("cpu_offloading");
  return mayOffload && *rc::gen::inRange(0, 5) == 0 ? with(std::move(link), "cpu_offloading", true) : link;
}

/// Half of them have a bias and a run of elementwise ops, which a linear takes into its step.
std::vector<Link> randomLinear(const std::string& id, std::vector<std::string>& branches) {
  std::vector<Link> links{linear(16, id)};
  if (*rc::gen::arbitrary<bool>()) return links;
  links.push_back(link("Bias", id + "_bias"));
  const int numOps = *rc::gen::inRange(0, 4);
  for (int i = 0; i < numOps; ++i) {
    static const std::vector<std::string> kKinds = {"GELU", "SReLU", "Dropout", "ConstantScale", "Formula"};
    const std::string own = id + "_" + std::to_string(i);
    const bool isAdd = *rc::gen::inRange(0, 3) == 0;
    links.push_back(isAdd ? randomAdd(own, branches) : link(*rc::gen::elementOf(kKinds), own));
  }
  return links;
}

std::vector<Link> randomLinks(int position, std::vector<std::string>& branches) {
  static const std::vector<std::string> kKinds = {
      "GELU",    "Bias",     "RMSNorm",       "LayerNorm",       "BasicLinear",
      "SwiGLU",  "Identity", "AddExtraInput", "MakeExtraOutput", "ConstantScale",
      "Dropout", "SReLU",    "GEGLU",         "Formula"};
  const std::string kind = *rc::gen::elementOf(kKinds);
  const std::string id = "op" + std::to_string(position);
  if (kind == "BasicLinear") return randomLinear(id, branches);
  if (kind == "AddExtraInput") return {randomAdd(id, branches)};
  if (kind == "MakeExtraOutput") {
    branches.push_back(id + ".extra");
    return {inPlace(link(kind, id), *rc::gen::arbitrary<bool>())};
  }
  if (*rc::gen::inRange(0, 4) == 0) branches.push_back(id + ".y");  // a plain fan-out
  return {link(kind, id)};
}

/// Gated ops halve the width; a linear in front, some with a bias, keeps every tensor 16 wide: branches always fit.
std::vector<Link> withWidths(std::vector<Link> links) {
  std::vector<Link> result;
  for (Link& item : links) {
    if (item.operation.ends_with("GLU")) {
      result.push_back(linear(32, item.id + "_wide"));
      if (*rc::gen::arbitrary<bool>()) result.push_back(link("Bias", item.id + "_wide_bias"));
    }
    result.push_back(std::move(item));
  }
  return result;
}

/// Every few ops a nested Sequential begins or ends, inside the previous one or after it.
void cutIntoSequentials(std::vector<Link>& links) {
  if (*rc::gen::arbitrary<bool>()) return;
  std::string path;
  for (std::size_t i = 0; i < links.size(); ++i) {
    const std::string own = "s" + std::to_string(i);
    const int choice = *rc::gen::inRange(0, 9);
    if (choice == 0) path.clear();
    if (choice == 1) path = own;
    if (choice == 2 && !path.empty()) path += "." + own;
    links[i].sequential = path;
  }
}

}  // namespace

RandomPipeline randomPipeline() {
  RandomPipeline pipeline;
  std::vector<std::string> branches;
  const int numOps = *rc::gen::inRange(1, 12);
  for (int i = 0; i < numOps; ++i)
    for (Link& item : randomLinks(i, branches)) pipeline.links.push_back(std::move(item));
  pipeline.links = withWidths(std::move(pipeline.links));
  for (Link& item : pipeline.links) item = randomlyOffloaded(randomlyTrained(std::move(item)));
  cutIntoSequentials(pipeline.links);
  pipeline.options.inputRequiresGradient = *rc::gen::arbitrary<bool>();
  for (const std::string& branch : branches)
    if (*rc::gen::inRange(0, 3) == 0) pipeline.options.extraOutputs.push_back(branch);
  for (const FusionRule* rule : builtinRules().all())
    if (*rc::gen::inRange(0, 4) == 0) pipeline.switches.without.push_back(rule->name);
  return pipeline;
}

}  // namespace fuseline::testing
