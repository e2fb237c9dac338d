// Plans and attempts of pipelines with many instances of a block, reported once.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fusion/fuser.h"
#include "core/graph/instances.h"

#include <span>
#include <string>
#include <vector>

namespace fuseline {

/// Attempts that are equal except for their instance are one group.
InstanceGroups attemptGroups(const Graph& graph, std::span<const Attempt> attempts, const DeviceModel& device);

/// Appended to an explanation: " The same holds in 79 more instances of block Layer."; empty outside of blocks.
std::string sameElsewhere(const Graph& graph, const Attempt& attempt, std::size_t count);
/// Appended to a gain: " in each of 80 instances of block Layer".
std::string inEachInstance(const Graph& graph, const Attempt& attempt, std::size_t count);

/// A line of a list, and how it is compared with others.
struct ListLine {
  std::string text;      // several lines, once folded
  std::string key;       // without the instance
  std::string instance;  // "layer3"
};

/// Lines that repeat three times or more in a row, such as the steps of equal layers, are kept once, followed by their
/// number of repetitions.
std::vector<ListLine> foldRepeats(std::vector<ListLine> lines);

}  // namespace fuseline
