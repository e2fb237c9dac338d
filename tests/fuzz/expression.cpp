// Integer expressions over symbols.
// SPDX-License-Identifier: Apache-2.0
#include "core/lowering/expression.h"
#include "tests/fuzz/fuzz.h"

using namespace fuseline;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::textOf(data, size);
  const auto lookup = [](const std::string& name) {
    return name == "M" ? std::optional<std::int64_t>(96) : name == "H" ? std::optional<std::int64_t>(0) : std::nullopt;
  };
  const ExpressionValue value = evaluate(text, lookup);
  const std::vector<std::string> names = symbolNames(text);
  (void)typedExpression(text, "M * 2");
  const std::string renamed = replaceSymbol(text, "M", "Rows");
  if (std::holds_alternative<std::int64_t>(value)) fuzz::expect(symbolNames(renamed).size() == names.size());
  return 0;
}
