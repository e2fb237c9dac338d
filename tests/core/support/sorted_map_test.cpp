// A sorted map against one of the standard library.
// SPDX-License-Identifier: Apache-2.0
#include "core/support/sorted_map.h"

#include <map>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace fuseline {
namespace {

RC_GTEST_PROP(SortedMap, HoldsWhatAMapHolds, (std::vector<std::pair<signed char, int>> entries)) {
  SortedMap<signed char, int> sorted;
  std::map<signed char, int> expected;
  for (const auto& [key, value] : entries) {
    sorted.set(key, value);
    expected.insert_or_assign(key, value);
  }
  for (int key = -128; key < 128; ++key) {
    const auto wanted = expected.find(static_cast<signed char>(key));
    const int* const found = sorted.find(static_cast<signed char>(key));
    RC_ASSERT((found != nullptr) == (wanted != expected.end()));
    if (found) RC_ASSERT(*found == wanted->second);
  }
}

TEST(SortedMap, HoldsManyInWhateverOrderTheyCome) {
  constexpr int kMany = 1000;
  SortedMap<int, int> sorted;
  for (int key = kMany; key > 0; --key) sorted.set(key, -key);
  for (int key = kMany; key > 0; key -= 2) sorted.set(key, key);
  for (int key = 1; key <= kMany; ++key) {
    ASSERT_NE(sorted.find(key), nullptr) << key;
    EXPECT_EQ(*sorted.find(key), key % 2 == 0 ? key : -key);
  }
  EXPECT_EQ(sorted.find(0), nullptr);
  EXPECT_EQ(sorted.find(kMany + 1), nullptr);
}

}  // namespace
}  // namespace fuseline
