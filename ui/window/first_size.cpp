// Room for the title bar is an estimate: window managers do not say its height before a window is shown.
// SPDX-License-Identifier: Apache-2.0
#include "ui/window/first_size.h"

namespace fuseline::ui {

namespace {
constexpr QSize kPreferredSize = {1600, 1000};
constexpr QSize kFrameSize = {8, 40};
}  // namespace

QSize firstWindowSize(QSize available) { return kPreferredSize.boundedTo(available - kFrameSize); }

}  // namespace fuseline::ui
