// Makes identifiers, literals and calls of Python.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/te/python_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

/// Source: the Python language reference, 2.3.1, and the names that a PyTorch module needs.
constexpr std::array<std::string_view, 36> kKeywords = {
    "False", "None",     "True",  "and",    "as",   "assert", "async",  "await",    "break",
    "class", "continue", "def",   "del",    "elif", "else",   "except", "finally",  "for",
    "from",  "global",   "if",    "import", "in",   "is",     "lambda", "nonlocal", "not",
    "or",    "pass",     "raise", "return", "try",  "while",  "with",   "yield",    "self"};

/// Source: dir() of torch.nn.Module (PyTorch 2.11) and of te.ops.Sequential (TransformerEngine 2.20), those without an
/// underscore in front, and `device`, an argument of the constructor.
constexpr const char* kModuleMembers =
    "T_destination add_module append apply bfloat16 buffers call_super_init children compile cpu cuda device "
    "double dump_patches eval extend extra_repr float forward get_buffer get_extra_state get_parameter "
    "get_submodule half insert ipu load_state_dict modules mtia named_buffers named_children named_modules "
    "named_parameters parameters pop register_backward_hook register_buffer register_forward_hook "
    "register_forward_pre_hook register_full_backward_hook register_full_backward_pre_hook "
    "register_load_state_dict_post_hook register_load_state_dict_pre_hook register_module register_parameter "
    "register_state_dict_post_hook register_state_dict_pre_hook requires_grad_ set_extra_state set_submodule "
    "share_memory state_dict to to_empty train training type xpu zero_grad";

bool isLetterOrDigit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

std::string identifier(std::string_view name) {
  std::string result(name);
  std::ranges::replace_if(
      result, [](char c) { return !isLetterOrDigit(c); }, '_');
  if (result.empty() || (result[0] >= '0' && result[0] <= '9')) return fmt::format("_{}", result);
  if (result[0] == '_') return fmt::format("v{}", result);  // names of Python's own, and of modules, begin so
  if (std::ranges::find(kKeywords, std::string_view(result)) != kKeywords.end()) result += '_';
  return result;
}

std::string escaped(char c) {
  if (c == '\\' || c == '"') return {'\\', c};
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7f ? fmt::format("\\x{:02x}", byte) : std::string(1, c);
}

}  // namespace

const std::string& PythonNames::of(std::string_view name) {
  if (const auto known = m_given.find(name); known != m_given.end()) return known->second;
  return m_given.emplace(name, fresh(name)).first->second;
}

std::string PythonNames::fresh(std::string_view wish) {
  const std::string stem = identifier(wish);
  std::string free = stem;
  for (int number = 2; m_taken.contains(free); ++number) free = fmt::format("{}_{}", stem, number);
  m_taken.insert(free);
  return free;
}

const std::set<std::string, std::less<>>& moduleMembers() {
  static const std::set<std::string, std::less<>> members = [] {
    std::istringstream names(kModuleMembers);
    return std::set<std::string, std::less<>>(std::istream_iterator<std::string>(names), {});
  }();
  return members;
}

std::string pythonText(std::string_view text) {
  std::string literal = "\"";
  for (const char c : text) literal += escaped(c);
  return literal + '"';
}

std::string pythonBool(bool value) { return value ? "True" : "False"; }

std::string pythonNumber(double value) {
  if (std::isnan(value)) return "float(\"nan\")";
  if (std::isinf(value)) return value > 0 ? "float(\"inf\")" : "-float(\"inf\")";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string docText(std::string_view text) {
  std::string result;
  for (const char c : text) result += c == '"' ? "'" : escaped(c);
  return result;
}

namespace {

constexpr std::size_t kColumns = 88;

/// In `f(a).g(b)` the first call is broken if not even its beginning fits.
std::string brokenAtFirstCall(const std::string& before, const PythonCall& call, const std::string& after,
                              std::size_t indent) {
  const std::size_t begin = call.callee.find('(') + 1, end = call.callee.rfind(')');
  const std::string blanks(indent, ' ');
  return fmt::format("{0}{1}{2}\n{0}    {3}\n{0}{4}({5}){6}\n", blanks, before, call.callee.substr(0, begin),
                     call.callee.substr(begin, end - begin), call.callee.substr(end), fmt::join(call.arguments, ", "),
                     after);
}

}  // namespace

std::string statement(const std::string& before, const PythonCall& call, const std::string& after, std::size_t indent) {
  const std::string blanks(indent, ' ');
  const std::string head = blanks + before + call.callee + "(";
  const std::string arguments = fmt::format("{}", fmt::join(call.arguments, ", "));
  if (head.size() + arguments.size() + 1 + after.size() <= kColumns || call.arguments.empty())
    return head + arguments + ")" + after + "\n";
  const std::size_t first = call.callee.find('(');
  const bool isTwoCalls = first != std::string::npos && first + 1 < call.callee.rfind(')');
  if (head.size() > kColumns && isTwoCalls) return brokenAtFirstCall(before, call, after, indent);
  const std::string tail = "\n" + blanks + ")" + after + "\n";
  if (indent + 4 + arguments.size() <= kColumns) return head + "\n    " + blanks + arguments + tail;
  return head + "\n    " + blanks + fmt::format("{}", fmt::join(call.arguments, ",\n    " + blanks)) + "," + tail;
}

}  // namespace fuseline
