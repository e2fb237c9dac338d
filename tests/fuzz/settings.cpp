// Texts of options: gates, sweeps, and cells of CSV files.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/numerics_gate.h"
#include "core/profile/run_comparison.h"
#include "core/profile/shape_sweep.h"
#include "core/support/csv.h"
#include "core/support/text.h"
#include "core/support/visible_text.h"
#include "tests/fuzz/fuzz.h"

#include <algorithm>
#include <array>
#include <string>

using namespace fuseline;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(fuzz::textOf(data, size));
  (void)parseNumericsGate(text);
  (void)parseGate(text);
  (void)parseSweep(std::array{text});
  const std::string field = csvField(text);
  fuzz::expect(field.empty() || std::string("=@").find(field.front()) == std::string::npos);
  const std::string visible = visibleText(text);
  fuzz::expect(std::ranges::none_of(visible, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }));
  fuzz::expect(cutText(text, 8).size() <= 11);
  return 0;
}
