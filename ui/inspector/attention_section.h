// AttentionSection: which keys the queries of an attention see, as a small picture, and its heads in words.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/attention_form.h"
#include "ui/session/session.h"
#include "ui/theme/theme.h"

#include <QLabel>
#include <QString>
#include <QWidget>

#include <cstdint>
#include <optional>

namespace fuseline::ui {

/// The mask of an attention: queries from top to bottom, keys from left to right.
struct AttentionMask {
  AttentionForm form;
  std::int64_t numQueries = 0;
  std::int64_t numKeys = 0;
  bool isPadded = false;     // the ends of sequences are inputs
  bool isArbitrary = false;  // the mask is an input

  /// Whether any query in a cell of an n by n picture sees any key there.
  bool sees(int row, int column, int numCells) const;
};
/// The mask of an op of the document. Nothing: it is no attention, or its tensors are not known yet.
std::optional<AttentionMask> attentionMask(const Graph& graph, const std::string& op);
/// "32 heads in 8 groups of 4", "each query sees at most 4096 keys, 53 % of all pairs".
QString attentionWords(const AttentionMask& mask);

class MaskPicture : public QWidget {
  Q_OBJECT

 public:
  static constexpr int kCells = 16;
  explicit MaskPicture(const Theme& theme, QWidget* parent = nullptr);
  void setMask(const AttentionMask& mask);

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  const Theme& m_theme;
  AttentionMask m_mask;
};

/// Hidden for other ops.
class AttentionSection : public QWidget {
  Q_OBJECT

 public:
  AttentionSection(Session& session, const Theme& theme, QString op, QWidget* parent = nullptr);
  void refresh();
  QString words() const { return m_words->text(); }

 private:
  Session& m_session;
  QString m_op;
  MaskPicture* m_picture;
  QLabel* m_words;
};

}  // namespace fuseline::ui
