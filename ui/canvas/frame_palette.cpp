// One table: a color by its name in the file.
// SPDX-License-Identifier: Apache-2.0
#include "ui/canvas/frame_palette.h"

#include "core/document/format_version.h"
#include "ui/widgets/plot_painting.h"

#include <QCoreApplication>

#include <algorithm>
#include <array>

namespace fuseline::ui {

namespace {

struct PaletteColor {
  const char* title;
  const char* light;
  const char* dark;
};

constexpr PaletteColor kGrey = {QT_TRANSLATE_NOOP("FramePalette", "Gray"), "#78818f", "#8d96a5"};
/// In the order of kFrameColors.
constexpr std::array<PaletteColor, kFrameColors.size()> kColors = {{
    {QT_TRANSLATE_NOOP("FramePalette", "Blue"), "#2f6fd0", "#5b93ec"},
    {QT_TRANSLATE_NOOP("FramePalette", "Green"), "#2a9156", "#4bbd7d"},
    {QT_TRANSLATE_NOOP("FramePalette", "Yellow"), "#b98a00", "#dcb33c"},
    {QT_TRANSLATE_NOOP("FramePalette", "Red"), "#c0464b", "#ee8078"},
    {QT_TRANSLATE_NOOP("FramePalette", "Purple"), "#8250c4", "#a97de6"},
}};
constexpr double kGroundShare = 0.08;
constexpr double kHeaderShare = 0.26;

const PaletteColor& colorOf(std::string_view name) {
  const auto found = std::ranges::find(kFrameColors, name);
  return found == kFrameColors.end() ? kGrey : kColors[static_cast<std::size_t>(found - kFrameColors.begin())];
}

}  // namespace

QColor frameColor(const Theme& theme, std::string_view name) {
  const PaletteColor& color = colorOf(name);
  return QColor(theme.isDark() ? color.dark : color.light);
}

QColor frameGround(const Theme& theme, std::string_view name) {
  return mixed(frameColor(theme, name), theme.colors().canvas, kGroundShare);
}

QColor headerGround(const Theme& theme, std::string_view name) {
  return mixed(frameColor(theme, name), theme.colors().canvas, kHeaderShare);
}

QString frameColorTitle(std::string_view name) {
  return QCoreApplication::translate("FramePalette", colorOf(name).title);
}

}  // namespace fuseline::ui
