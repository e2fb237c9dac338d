// Tensors at ports: the index finds the same ones as the search.
// SPDX-License-Identifier: Apache-2.0
#include "core/edit/port_values.h"

#include "core/edit/apply_edit.h"
#include "core/edit/links.h"
#include "core/lowering/document_operation.h"
#include "core/lowering/lowering.h"
#include "tests/core/edit/edit_scene.h"
#include "tests/support/random_edits.h"

#include <gtest/gtest.h>

namespace fuseline::testing {
namespace {

/// All output ports of a document, and one of an op that is not there.
std::vector<Endpoint> outputsOf(const PipelineDocument& document) {
  std::vector<Endpoint> ports = {{"nowhere", "y"}, {"", ""}};
  for (const DocumentInput& input : document.inputs()) ports.push_back({input.id, ""});
  for (const DocumentOp& op : document.ops())
    if (const OperationPointer operation = operationOf(document, op))
      for (const Port& port : operation->outputs) ports.push_back({op.id, port.name});
  return ports;
}

void expectTheSame(const PipelineDocument& document) {
  const LoweredGraph lowered = lower(document);
  const PortValues values(lowered.graph);
  for (const Endpoint& port : outputsOf(document))
    EXPECT_EQ(values.at(port), valueAt(lowered.graph, port)) << toString(port);
}

TEST(PortValues, AreThoseOfTheSearch) {
  for (const char* name : {"gpt_layer", "transformer_stack", "grouped_mlp", "qwen3_moe_layer"})
    expectTheSame(example(name));
}

TEST(PortValues, OfABypassedOpIsItsInput) {
  PipelineDocument document = parseDocument(smallPipeline()).document;
  ASSERT_TRUE(applyEdit(document, SetBypassed{"act", true}));
  const LoweredGraph lowered = lower(document);
  const Value* const value = PortValues(lowered.graph).at({"act", "y"});
  ASSERT_TRUE(value);
  EXPECT_EQ(value, valueAt(lowered.graph, {"fc", "y"}));
  expectTheSame(document);
}

}  // namespace
}  // namespace fuseline::testing
