// MemoryPlot: a plan's memory in use, a column a step, and what each op makes forward keep for backward.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/analysis.h"
#include "core/plan/memory_profile.h"

#include <QString>
#include <QStringList>

#include <array>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

namespace fuseline::ui {

/// "1.5 MiB".
QString bytesText(std::int64_t bytes);

struct MemoryColumn {
  QString label;  // the step's name
  QStringList owners;
  std::vector<std::string> ops;  // of the graph
  std::string kernel;
  Phase phase = Phase::Forward;
  std::array<std::int64_t, kNumMemoryPurposes> bytes{};

  std::int64_t of(MemoryPurpose purpose) const { return bytes[static_cast<std::size_t>(purpose)]; }
  std::int64_t total() const { return std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0}); }
};

/// Description of a column, as rich text, and as plain text for assistive technology.
QString tipOf(const MemoryColumn& column);
QString wordsOf(const MemoryColumn& column);

struct MemoryPlot {
  std::vector<MemoryColumn> columns;
  std::size_t peak = 0;  // a column
  std::int64_t allocatedBytes = 0;
};

/// Leaves out the other columns. The peak is the highest one that is left.
MemoryPlot onlyColumns(MemoryPlot plot, const std::function<bool(const MemoryColumn&)>& keeps);

/// Plot of the fused or the unfused plan. Empty without plans.
MemoryPlot memoryPlot(const Analysis& analysis, bool isFused);

struct KeptRow {
  QString tensor;
  QString spec;
  std::optional<std::int64_t> unfusedBytes;  // nothing: that plan does not keep it
  std::optional<std::int64_t> fusedBytes;
  QString lifetime;  // "from norm until fc1, for fc1": in the fused plan, if it keeps it
  bool isOnHost = false;
};

/// Tensors that one op reads in backward, before any other op in the pipeline's order.
struct KeptGroup {
  QString op;
  QString owner;
  std::vector<KeptRow> rows;

  /// Bytes of the device.
  std::int64_t unfusedBytes() const;
  std::int64_t fusedBytes() const;
};

/// By op, in the order of the pipeline. Empty without plans.
std::vector<KeptGroup> keptByOp(const Analysis& analysis);

/// "49 MiB allocated, unfused 50 MiB; at most 49 MiB in use, at fc2 (backward). Kept for backward: 9.25 MiB, unfused
/// 9.25 MiB." Empty without plans.
QString memorySummary(const Analysis& analysis);

}  // namespace fuseline::ui
