// The picture asks the op's own definition, cell by cell.
// SPDX-License-Identifier: Apache-2.0
#include "ui/inspector/attention_section.h"

#include "ui/theme/format.h"
#include "ui/widgets/translated.h"

#include <QHBoxLayout>
#include <QPainter>

#include <algorithm>
#include <vector>

namespace fuseline::ui {

namespace {

constexpr int kCellPx = 6;

const Node* attentionNode(const Graph& graph, const std::string& op) {
  for (const Node& node : graph.nodes())
    if (node.owner == op && node.operation->name == "DotProductAttention") return &node;
  return nullptr;
}

QString headsText(const AttentionForm& form) {
  const QString heads = counted(form.heads, translated("head"), translated("heads"));
  if (form.groups == form.heads) return heads;
  return translated("%1 in %2 of %3")
      .arg(heads, counted(form.groups, translated("group"), translated("groups")))
      .arg(form.headsPerGroup());
}

QString percentText(double share) {
  const double percent = 100.0 * share;
  return QStringLiteral("%1 %").arg(QString::number(percent, 'f', percent < 9.95 ? 1 : 0));
}

}  // namespace

/// Later queries see no earlier keys, so the first and the last query of a cell tell what all of them see.
bool AttentionMask::sees(int row, int column, int numCells) const {
  const auto firstIn = [numCells](int cell, std::int64_t size) { return size * cell / numCells; };
  const auto lastIn = [&](int cell, std::int64_t size) {
    return std::max(firstIn(cell, size), firstIn(cell + 1, size) - 1);
  };
  const std::int64_t first = form.keysOf(firstIn(row, numQueries), numQueries, numKeys).first;
  const std::int64_t last = form.keysOf(lastIn(row, numQueries), numQueries, numKeys).last;
  return first <= lastIn(column, numKeys) && firstIn(column, numKeys) < last && first < last;
}

std::optional<AttentionMask> attentionMask(const Graph& graph, const std::string& op) {
  const Node* const node = attentionNode(graph, op);
  if (!node) return std::nullopt;
  const AttentionForm form = attentionForm(node->attributes);
  std::vector<Shape> shapes;
  for (const ValueId input : node->inputs) shapes.push_back(graph.value(input).spec.shape);
  const Result<AttentionLayouts> layouts = attentionLayouts(form, shapes);
  if (!layouts) return std::nullopt;
  return AttentionMask{.form = form,
                       .numQueries = layouts->q.tokens,
                       .numKeys = layouts->k.tokens,
                       .isPadded = form.cuSeqlensQSlot >= 0,
                       .isArbitrary = form.maskSlot >= 0};
}

QString attentionWords(const AttentionMask& mask) {
  QStringList lines = {headsText(mask.form)};
  if (mask.isArbitrary) {
    lines.append(translated("The mask is an input."));
  } else {
    const double pairs = static_cast<double>(mask.numQueries) * static_cast<double>(mask.numKeys);
    const auto seen = static_cast<double>(numPairs(mask.form, mask.numQueries, mask.numKeys));
    lines.append(translated("%1 queries × %2 keys: %3 of the pairs are attended")
                     .arg(mask.numQueries)
                     .arg(mask.numKeys)
                     .arg(percentText(pairs > 0.0 ? seen / pairs : 0.0)));
    if (mask.form.left >= 0 && mask.form.right >= 0)
      lines.append(translated("Window: %1 keys to the left, %2 to the right").arg(mask.form.left).arg(mask.form.right));
    if (mask.numQueries != mask.numKeys)
      lines.append(mask.form.isBottomRight ? translated("Diagonal aligned to the bottom right")
                                           : translated("Diagonal aligned to the top left"));
  }
  if (mask.isPadded) lines.append(translated("Sequence lengths are inputs; padding tokens are skipped."));
  return lines.join(u'\n');
}

MaskPicture::MaskPicture(const Theme& theme, QWidget* parent) : QWidget(parent), m_theme(theme) {
  setFixedSize(kCells * kCellPx + 1, kCells * kCellPx + 1);
  setToolTip(
      tr("Queries from top to bottom, keys from left to right; in a filled cell at least one query attends to a key"));
}

void MaskPicture::setMask(const AttentionMask& mask) {
  m_mask = mask;
  update();
}

/// Padding is hatched at the ends of both axes, for an example: its size is in the inputs.
void MaskPicture::paintEvent(QPaintEvent* /*event*/) {
  QPainter painter(this);
  const ThemeColors& colors = m_theme.colors();
  painter.fillRect(rect(), colors.base);
  constexpr int kPaddedFrom = kCells * 3 / 4;
  for (int row = 0; row < kCells; ++row)
    for (int column = 0; column < kCells; ++column) {
      const QRect cell(column * kCellPx + 1, row * kCellPx + 1, kCellPx - 1, kCellPx - 1);
      const bool isPadding = m_mask.isPadded && (row >= kPaddedFrom || column >= kPaddedFrom);
      if (isPadding || m_mask.isArbitrary)
        painter.fillRect(cell, QBrush(colors.dimText, Qt::BDiagPattern));
      else if (m_mask.sees(row, column, kCells))
        painter.fillRect(cell, colors.accent);
    }
  painter.setPen(colors.border);
  painter.drawRect(rect().adjusted(0, 0, -1, -1));
}

AttentionSection::AttentionSection(Session& session, const Theme& theme, QString op, QWidget* parent)
    : QWidget(parent),
      m_session(session),
      m_op(std::move(op)),
      m_picture(new MaskPicture(theme, this)),
      m_words(new QLabel(this)) {
  m_words->setWordWrap(true);
  auto* layout = new QHBoxLayout(this);
  layout->setContentsMargins(0, 4, 0, 4);
  layout->setSpacing(10);
  layout->addWidget(m_picture, 0, Qt::AlignTop);
  layout->addWidget(m_words, 1);
  refresh();
}

void AttentionSection::refresh() {
  const std::optional<AttentionMask> mask = attentionMask(m_session.plan().analysis()->graph(), m_op.toStdString());
  setVisible(mask.has_value());
  if (!mask) return;
  m_picture->setMask(*mask);
  m_words->setText(attentionWords(*mask));
  m_picture->setAccessibleName(m_words->text());
}

}  // namespace fuseline::ui
