// Tour: what a newcomer is led through in the window, step by step; a step knows when it is done.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/session/session.h"

#include <QString>

#include <functional>
#include <string>
#include <vector>

namespace fuseline::ui {

struct TourStep {
  QString text;                                     // rich text: what to do, and what is to be seen
  QString pane = {};                                // that is brought to the front, by its name; empty: none
  std::function<bool(const Session&)> isDone = {};  // of a session whose analysis is up to date; empty: the user says
};

struct Tour {
  QString title;
  QString summary;
  std::string pipeline;  // the name of the template that it begins with
  std::vector<TourStep> steps;
};

/// In the order in which one would take them.
const std::vector<Tour>& tours();

}  // namespace fuseline::ui
