// QuantizationScope: when the states of delayed scaling are updated.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace fuseline {

/// How a scope ends.
struct ScopeEnd {
  /// Something in it ran forward for a backward pass.
  bool needsGradients = false;
  /// A CUDA graph is being recorded: its own update kernel runs at replay instead.
  bool isCapturing = false;
};

/// Scopes in which pipelines run with a recipe; they nest. Forward states are updated when the outermost one ends,
/// backward states after the backward pass of the first pipeline, which is the last to finish.
/// Source: TransformerEngine's autocast.
class QuantizationScope {
 public:
  void enter();
  /// True for the first pipeline of the outermost scope that will run backward: its backward ends with the update.
  bool takeFirst();
  /// True when the forward states are to be updated now.
  bool exit(ScopeEnd end);

  bool isActive() const { return m_depth > 0; }

 private:
  int m_depth = 0;
  bool m_isFirst = false;
};

}  // namespace fuseline
