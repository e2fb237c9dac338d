// How the modules between te.ops.Sequential are written: as the document says, as PyTorch, or as a Placeholder.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/te/te_sequences.h"
#include "core/support/result.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace fuseline {

class BetweenModules {
 public:
  explicit BetweenModules(std::vector<ModuleBetween> modules) : m_modules(std::move(modules)) {}

  /// Decides how each is written. Errors: a call that is no expression of Python.
  Result<void> prepare();
  const std::vector<ModuleBetween>& all() const { return m_modules; }
  /// Sentences for readers of the script.
  const std::vector<std::string>& notes() const { return m_notes; }
  /// The classes that the calls need.
  std::string classes() const;
  /// The expression that makes the module.
  std::string callOf(const ModuleBetween& module) const;

 private:
  void fillIn(const ModuleBetween& module);
  void notePlaceholder(const ModuleBetween& module);
  void noteModule(const ModuleBetween& module);
  bool hasPlaceholders() const;

  std::vector<ModuleBetween> m_modules;
  std::map<std::string, std::pair<std::string, std::string>> m_classes;  // name and text, by what Externals keep
  std::vector<std::string> m_notes;
};

}  // namespace fuseline
