// The last look at what goes to a terminal or a log: texts of files must not steer it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <streambuf>
#include <string_view>

namespace fuseline::cli {

/// Passes text on to another buffer. Control characters become visible ("\u001b"), but for line breaks, tabs and the
/// colours of styled(); what a service would take for a command of this program becomes text: "::" where a line begins
/// and "##[" anywhere (GitHub's workflow commands). JSON keeps its meaning. Nothing is held back but a carriage return.
class VisibleBuffer final : public std::streambuf {
 public:
  /// The other buffer must outlive this one. Without hasColour the codes of colours become visible, too.
  VisibleBuffer(std::streambuf& target, bool hasColour) : m_target(target), m_hasColour(hasColour) {}

 protected:
  int_type overflow(int_type character) override;
  std::streamsize xsputn(const char* text, std::streamsize size) override;
  int sync() override { return m_target.pubsync(); }

 private:
  bool put(std::string_view text);
  /// The bytes that pass unchanged from `at` on: one, or those of a style; 0: the character must be made visible.
  std::size_t passing(std::string_view text, std::size_t at) const;
  bool isCommand(char next) const;
  void follow(char character);

  std::streambuf& m_target;
  bool m_hasColour;
  bool m_isIndent = true;  // nothing but spaces since the line began
  int m_colons = 0;        // directly before, after the indent alone
  int m_hashes = 0;        // directly before
  bool m_hasReturn = false;
};

}  // namespace fuseline::cli
