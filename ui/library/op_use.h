// OpUse: favorite and recently added ops, for the top of the palette.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/document.h"

#include <QObject>
#include <QSet>
#include <QStringList>

namespace fuseline::ui {

class OpUse : public QObject {
  Q_OBJECT

 public:
  /// isKept: whether the lists are read from the settings and written there.
  explicit OpUse(bool isKept, QObject* parent = nullptr);

  /// Names of palette entries, in the order in which they were chosen.
  const QStringList& favorites() const { return m_favorites; }
  /// The newest first.
  const QStringList& recents() const { return m_recents; }
  void setFavorite(const QString& entry, bool isFavorite);
  /// Notes an op that the document has and did not have before. Several at once are pasted or opened, and not noted.
  /// isUndone: the last edits were taken back, so that nobody chose what is there now.
  void follow(const PipelineDocument& document, bool isUndone);

 Q_SIGNALS:
  void changed();

 private:
  void keep() const;

  bool m_isKept;
  QStringList m_favorites;
  QStringList m_recents;
  QSet<QString> m_known;  // ids of the document's ops
};

}  // namespace fuseline::ui
