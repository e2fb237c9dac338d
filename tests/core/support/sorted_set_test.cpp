// A sorted set against one of the standard library.
// SPDX-License-Identifier: Apache-2.0
#include "core/support/sorted_set.h"

#include <set>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace fuseline {
namespace {

RC_GTEST_PROP(SortedSet, HoldsWhatASetHolds, (std::vector<int> items)) {
  SortedSet<int> sorted;
  for (const int item : items) sorted.insert(item);
  const std::set<int> expected(items.begin(), items.end());
  RC_ASSERT(std::vector<int>(sorted.begin(), sorted.end()) == std::vector<int>(expected.begin(), expected.end()));
  for (const int item : items) RC_ASSERT(sorted.contains(item));
}

TEST(SortedSet, KnowsWhatItDoesNotHold) {
  SortedSet<int> set;
  EXPECT_FALSE(set.contains(0));
  set.insert(2);
  EXPECT_FALSE(set.contains(1));
  EXPECT_FALSE(set.contains(3));
}

}  // namespace
}  // namespace fuseline
