// Long jobs: work on another thread, while the window stays alive and soon offers to cancel.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QString>
#include <QWidget>

#include <functional>
#include <memory>
#include <optional>
#include <utility>

namespace fuseline::ui {

/// Waits for a job on another thread. A job that takes longer than 0.3 s gets a dialog over the window with a button to
/// cancel. False: the user canceled. The job then runs to its end, so that it owns all that it uses.
bool isDoneUnlessCanceled(QWidget& window, const QString& title, std::function<void()> job);

/// The result of the work; nullopt: the user canceled.
template <class Work>
auto resultUnlessCanceled(QWidget& window, const QString& title, Work work) -> std::optional<decltype(work())> {
  auto result = std::make_shared<std::optional<decltype(work())>>();
  const bool isDone =
      isDoneUnlessCanceled(window, title, [result, work = std::move(work)]() mutable { result->emplace(work()); });
  return isDone ? std::move(*result) : std::nullopt;
}

}  // namespace fuseline::ui
