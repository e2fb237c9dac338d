// ANSI colours and the progress line.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>

namespace fuseline::cli {

namespace {

constexpr std::string_view kClearLine = "\r\033[K";
constexpr std::string_view kStyleEnd = "\033[0m";
constexpr auto kQuietTime = std::chrono::seconds(1);
constexpr auto kBetweenFrames = std::chrono::milliseconds(50);

std::string_view codeOf(Style style) {
  switch (style) {
    case Style::Plain: return "";
    case Style::Bold: return "\033[1m";
    case Style::Dim: return "\033[2m";
    case Style::Good: return "\033[32m";
    case Style::Bad: return "\033[33m";
  }
  return "";
}

bool startsCharacter(char byte) { return (static_cast<unsigned char>(byte) & 0xc0u) != 0x80u; }

bool hasValue(const char* variable, std::string_view value) {
  const char* found = std::getenv(variable);
  return found && found == value;
}

std::string bar(int done, int total) {
  constexpr int kWidth = 24;
  const int filled = std::clamp(total > 0 ? kWidth * done / total : 0, 0, kWidth);
  std::string text;
  for (int i = 0; i < kWidth; ++i) text += i < filled ? "█" : "░";
  return text;
}

constexpr std::size_t kNarrowestText = 60;
constexpr std::size_t kWidestText = 120;

/// As it is said or found when the program begins; the widest where it is neither.
std::size_t widthOfTerminal() {
  const char* said = std::getenv("COLUMNS");
  const std::string_view text = said ? said : "";
  std::size_t columns = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), columns).ec == std::errc() && columns > 0) return columns;
  winsize size{};
  const bool isKnown = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return isKnown ? size.ws_col : kWidestText;
}

}  // namespace

bool outputHasColour() {
  if (hasValue("FUSELINE_COLOR", "always")) return true;
  const char* noColour = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  const bool isDumb = terminal && std::string_view(terminal) == "dumb";
  return isatty(STDOUT_FILENO) && !isDumb && !(noColour && *noColour);
}

std::size_t outputWidth() {
  static const std::size_t width = std::clamp(widthOfTerminal(), kNarrowestText, kWidestText);
  return width;
}

std::string styled(std::string_view text, Style style, bool hasColour) {
  if (!hasColour || style == Style::Plain || text.empty()) return std::string(text);
  return fmt::format("{}{}{}", codeOf(style), text, kStyleEnd);
}

std::size_t styleLength(std::string_view text) {
  if (text.starts_with(kStyleEnd)) return kStyleEnd.size();
  for (const Style style : {Style::Bold, Style::Dim, Style::Good, Style::Bad})
    if (text.starts_with(codeOf(style))) return codeOf(style).size();
  return 0;
}

std::size_t displayWidth(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, startsCharacter));
}

std::string fitted(std::string_view text, std::size_t width) {
  if (displayWidth(text) <= width) return std::string(text);
  std::size_t end = 0;
  for (std::size_t columns = 0; end < text.size(); ++end)
    if (startsCharacter(text[end]) && ++columns == width) break;
  return std::string(text.substr(0, end)) + "…";
}

std::vector<std::string> wrapped(std::string_view text, std::size_t width) {
  std::vector<std::string> lines(1);
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    std::string& line = lines.back();
    const bool fits = displayWidth(line) + 1 + displayWidth(word) <= width;
    if (line.empty())
      line = word;
    else if (fits)
      line.append(" ").append(word);
    else
      lines.emplace_back(word);
  }
  return lines;
}

std::string wrappedLines(std::string_view text, std::size_t hang) {
  const std::size_t width = outputWidth();
  std::string result;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
    const bool isWide = displayWidth(line) > width;
    std::vector<std::string> pieces = {std::string(line.substr(indent))};
    if (isWide) pieces = wrapped(line.substr(indent), width - std::min(width, indent + hang));
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      if (begin + i > 0) result += '\n';
      result.append(i == 0 ? indent : indent + hang, ' ') += pieces[i];
    }
    begin = end + 1;
  }
  return result;
}

ProgressBar::ProgressBar(bool isWanted)
    : m_isWanted(isWanted && (isatty(STDERR_FILENO) || hasValue("FUSELINE_PROGRESS", "lines"))),
      m_asLines(hasValue("FUSELINE_PROGRESS", "lines")) {}

ProgressBar::~ProgressBar() { clear(); }

void ProgressBar::show(std::string_view stage, int done, int total) {
  const Clock::time_point now = Clock::now();
  if (!m_isWanted || now - m_start < kQuietTime || now - m_lastDrawn < kBetweenFrames) return;
  m_lastDrawn = now;
  if (m_asLines) {
    const std::string line = fmt::format("{}{}\t{}\t{}\n", kProgressMark, stage, done, total);
    std::fwrite(line.data(), 1, line.size(), stderr);
    return;
  }
  m_isShown = true;
  const std::string text = fmt::format("{}{} {} {}/{}", kClearLine, stage, bar(done, total), done, total);
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

void ProgressBar::clear() {
  if (!m_isShown) return;
  std::fwrite(kClearLine.data(), 1, kClearLine.size(), stderr);
  std::fflush(stderr);
  m_isShown = false;
}

}  // namespace fuseline::cli
