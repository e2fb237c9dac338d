// The program of the window's tests.
// SPDX-License-Identifier: Apache-2.0
#include "tests/ui/ui_test_main.h"

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <string>

namespace fuseline::ui {
namespace {

std::map<std::string, UiTest>& uiTests() {
  static std::map<std::string, UiTest> tests;
  return tests;
}

}  // namespace

bool registerUiTest(const char* file, UiTest test) {
  return uiTests().emplace(std::filesystem::path(file).stem().string(), test).second;
}

}  // namespace fuseline::ui

int main(int argc, char** argv) {
  const auto& tests = fuseline::ui::uiTests();
  const auto test = argc < 2 ? tests.end() : tests.find(argv[1]);
  if (test == tests.end()) {
    std::cerr << "Give the name of a test, and arguments of QtTest if you like:\n";
    for (const auto& [name, run] : tests) std::cerr << "  " << argv[0] << ' ' << name << '\n';
    return EXIT_FAILURE;
  }
  argv[1] = argv[0];
  return test->second(argc - 1, argv + 1);
}
