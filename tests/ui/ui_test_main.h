// One program holds the window's tests; each file is one QObject, which runs as `ui_tests test_ui_canvas [ARGS]`.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QApplication>
#include <QTest>

namespace fuseline::ui {

/// Runs one QObject and returns the exit code. argv begins with the program's name.
using UiTest = int (*)(int argc, char** argv);

/// Adds the test under the name of its file, without folder and ending.
bool registerUiTest(const char* file, UiTest test);

template <typename Test, typename Application = QApplication>
int runUiTest(int argc, char** argv) {
  const Application application(argc, argv);
  Test test;
  return QTest::qExec(&test, argc, argv);
}

}  // namespace fuseline::ui

/// Within the namespace of the file.
#define FUSELINE_UI_TEST(Test) \
  [[maybe_unused]] const bool isRegistered = fuseline::ui::registerUiTest(__FILE__, fuseline::ui::runUiTest<Test>);
