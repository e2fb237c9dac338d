// Result<T>, Error and Verdict: results that may be errors with an explanation.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace fuseline {

/// Kinds of failure; the values are the exit codes of the command line.
enum class ErrorKind { InvalidInput = 1, Usage = 2, NoDevice = 3, RunFailed = 4, ExpectationNotMet = 5 };

/// A message for the user: the place, what was found, what was expected, and the next step.
struct Error {
  std::string message;
  ErrorKind kind = ErrorKind::InvalidInput;
  /// Subject of the message, if the caller can point at it, such as the name of an attribute; may be empty.
  std::string subject = {};
};

/// A value, or the Error that explains why there is none.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : m_state(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : m_state(std::in_place_index<1>, std::move(error)) {}

  bool hasValue() const { return m_state.index() == 0; }
  explicit operator bool() const { return hasValue(); }

  T& operator*() & { return std::get<0>(m_state); }
  const T& operator*() const& { return std::get<0>(m_state); }
  T&& operator*() && { return std::get<0>(std::move(m_state)); }
  T* operator->() { return &std::get<0>(m_state); }
  const T* operator->() const { return &std::get<0>(m_state); }

  const Error& error() const { return std::get<1>(m_state); }

 private:
  std::variant<T, Error> m_state;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : m_error(std::move(error)) {}

  bool hasValue() const { return !m_error; }
  explicit operator bool() const { return hasValue(); }
  const Error& error() const { return *m_error; }

 private:
  std::optional<Error> m_error;
};

/// Yes, or no with a sentence that gives the reason.
class [[nodiscard]] Verdict {
 public:
  static Verdict yes() { return {}; }
  static Verdict no(std::string reason) { return Verdict(std::move(reason)); }

  explicit operator bool() const { return !m_reason; }
  /// The sentence; empty for a yes.
  std::string reason() const { return m_reason.value_or(std::string()); }

 private:
  Verdict() = default;
  explicit Verdict(std::string reason) : m_reason(std::move(reason)) {}
  std::optional<std::string> m_reason;
};

}  // namespace fuseline
