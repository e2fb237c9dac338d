// Pieces of Python source: identifiers for the names of a pipeline, literals, and calls as black sets them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fuseline {

/// "layer1.fc-1" becomes "layer1_fc_1", "class" becomes "class_", "_modules" becomes "v_modules"; a name that is taken
/// gets a number.
class PythonNames {
 public:
  /// taken: names that are reserved, of members of the class, or of modules.
  explicit PythonNames(std::set<std::string, std::less<>> taken = {}) : m_taken(std::move(taken)) {}
  /// The same identifier for the same name, another for another one.
  const std::string& of(std::string_view name);
  /// An identifier that no name gets.
  std::string fresh(std::string_view wish);

 private:
  std::set<std::string, std::less<>> m_taken;
  std::map<std::string, std::string, std::less<>> m_given;
};

/// Members of torch.nn.Module and te.ops.Sequential among the possible names of ops and parameters.
const std::set<std::string, std::less<>>& moduleMembers();

/// "x", with quotes, backslashes and control characters escaped.
std::string pythonText(std::string_view text);
/// True, False.
std::string pythonBool(bool value);
/// 1e-05, 1.0, float("inf"): a literal of a double, the shortest that reads back the same.
std::string pythonNumber(double value);
/// Escaped for a docstring.
std::string docText(std::string_view text);

struct PythonCall {
  std::string callee;  // "te.ops.Linear", or "te.ops.MakeExtraOutput().set_extra_output_channel"
  std::vector<std::string> arguments;
};

/// The call between `before` and `after`, on one line of 88 columns if it fits, else with its arguments on a separate
/// line, else with one argument per line. The first line is indented by `indent` blanks, and all end with a newline.
/// Source: "The Black code style", current style.
std::string statement(const std::string& before, const PythonCall& call, const std::string& after, std::size_t indent);

}  // namespace fuseline
