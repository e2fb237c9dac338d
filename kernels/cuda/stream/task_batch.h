// Several tasks of one kernel in one launch: groups of a tensor are often too small to fill a GPU, and so numerous that
// the launches would take longer than the tasks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

namespace fuseline::cuda {

/// Those of a launch, which a kernel gets by value; blocks of threads find theirs by the last index of the grid.
template <class Task>
struct TaskBatch {
  static constexpr std::size_t kMaxTasks = 8;
  Task tasks[kMaxTasks];
};

/// launch(tasks, batch) for at most a batch's number of tasks at a time.
template <class Task, class Launch>
void launchInBatches(std::span<const Task> tasks, const Launch& launch) {
  for (; !tasks.empty(); tasks = tasks.subspan(std::min(tasks.size(), TaskBatch<Task>::kMaxTasks))) {
    const std::span<const Task> next = tasks.first(std::min(tasks.size(), TaskBatch<Task>::kMaxTasks));
    TaskBatch<Task> batch;
    std::ranges::copy(next, batch.tasks);
    launch(next, batch);
  }
}

}  // namespace fuseline::cuda
