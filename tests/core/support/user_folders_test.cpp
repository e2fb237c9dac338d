// The cache folder under every combination of the variables that name it.
// SPDX-License-Identifier: Apache-2.0
#include "core/support/user_folders.h"

#include <map>
#include <string>

#include <gtest/gtest.h>

namespace fuseline {
namespace {

Environment of(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

TEST(UserCacheFolder, IsBelowXdgCacheHomeWhereThatIsSet) {
  EXPECT_EQ(userCacheFolder(of({{"XDG_CACHE_HOME", "/scratch"}, {"HOME", "/home/ada"}})), "/scratch/fuseline");
}

TEST(UserCacheFolder, IsBelowHomeOtherwise) {
  EXPECT_EQ(userCacheFolder(of({{"HOME", "/home/ada"}})), "/home/ada/.cache/fuseline");
}

TEST(UserCacheFolder, IgnoresWhatIsEmptyOrRelative) {
  EXPECT_EQ(userCacheFolder(of({{"XDG_CACHE_HOME", ""}, {"HOME", "/home/ada"}})), "/home/ada/.cache/fuseline");
  EXPECT_EQ(userCacheFolder(of({{"XDG_CACHE_HOME", "here"}, {"HOME", "/home/ada"}})), "/home/ada/.cache/fuseline");
  EXPECT_EQ(userCacheFolder(of({{"HOME", "here"}})), "");
  EXPECT_EQ(userCacheFolder(of({})), "");
}

}  // namespace
}  // namespace fuseline
