// A number becomes a symbol without changing what the pipeline computes.
// SPDX-License-Identifier: Apache-2.0
#include "core/edit/symbol_edits.h"

#include "core/edit/links.h"
#include "tests/core/edit/edit_scene.h"

#include <string>

#include <gtest/gtest.h>

namespace fuseline::testing {
namespace {

std::string addition(const std::string& a, const std::string& b) {
  return smallDocument(R"("inputs": [{"id": "a", "dtype": "bf16", "shape": )" + a +
                       R"(}, {"id": "b", "dtype": "bf16", "shape": )" + b + R"(}],
    "ops": [{"id": "add", "op": "AddExtraInput", "attributes": {}}],
    "wires": [["a", "add.x"], ["b", "add.extra"]], "outputs": [{"id": "y", "from": "add.y"}])");
}

TEST(SymbolEdits, TheSameExtentOfAllInputsGetsTheName) {
  History history{parseDocument(addition("[512, 64]", "[512, 64]")).document};
  const auto symbol = leadingExtentAsSymbol(history.document());
  ASSERT_TRUE(symbol.has_value());
  EXPECT_EQ(symbol->value, 512);
  EXPECT_EQ(symbol->name, "M2");  // M has another value already
  ASSERT_TRUE(appliesAndUndoes(history, symbol->edit));
  for (const DocumentInput& input : history.document().inputs()) EXPECT_EQ(input.shape.dump(), R"(["M2",64])");
  const LoweredGraph lowered = lower(history.document());
  EXPECT_FALSE(hasErrors(lowered.diagnostics));
  EXPECT_EQ(valueAt(lowered.graph, {"add", "y"})->spec.shape, (Shape{512, 64}));
}

TEST(SymbolEdits, SymbolsAndExpressionsStay) {
  EXPECT_FALSE(leadingExtentAsSymbol(parseDocument(addition(R"(["M", 64])", R"(["M", 64])")).document).has_value());
}

}  // namespace
}  // namespace fuseline::testing
