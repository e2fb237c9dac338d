// Abilities of the terminal: color, width of text, a progress bar.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace fuseline::cli {

enum class Style { Plain, Bold, Dim, Good, Bad };

/// May standard output be coloured? Only a terminal that knows colours, and only without NO_COLOR
/// (https://no-color.org). FUSELINE_COLOR=always: another machine's terminal is at the end of it.
bool outputHasColour();

/// Columns for text: those of the terminal, or of COLUMNS where that is set, but at least 60 and at most 120, which is
/// what people read at once. 120 where there is no terminal.
std::size_t outputWidth();

/// The text in ANSI colours, or as it is.
std::string styled(std::string_view text, Style style, bool hasColour);

/// Bytes of a code of styled() at the beginning of a text; 0: it begins with none.
std::size_t styleLength(std::string_view text);

/// Columns that a UTF-8 text takes; every character of ours is one column wide.
std::size_t displayWidth(std::string_view text);

/// Cuts a text to `width` columns, with an ellipsis at its end.
std::string fitted(std::string_view text, std::size_t width);

/// The text in lines of at most `width` columns, broken at spaces. At least one line.
std::vector<std::string> wrapped(std::string_view text, std::size_t width);

/// Lines that are wider than outputWidth() are broken at spaces; what follows stands `hang` columns deeper. Without a
/// line break at the end. Only for text without colours.
std::string wrappedLines(std::string_view text, std::size_t hang);

/// Beginning of a line of progress for a program that shows it: stage, done and total, with tabs between them.
inline constexpr std::string_view kProgressMark = "fuseline-progress\t";

/// One line on standard error that is drawn again and again: on a terminal only, and after a second. With
/// FUSELINE_PROGRESS=lines in the environment it is lines that begin with kProgressMark.
class ProgressBar {
 public:
  explicit ProgressBar(bool isWanted);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void show(std::string_view stage, int done, int total);
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  bool m_isWanted;
  bool m_asLines;
  bool m_isShown = false;
  Clock::time_point m_start = Clock::now();
  Clock::time_point m_lastDrawn;
};

}  // namespace fuseline::cli
