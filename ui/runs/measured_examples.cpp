// Reads the folders of measured examples.
// SPDX-License-Identifier: Apache-2.0
#include "ui/runs/measured_examples.h"

#include "core/profile/run_file.h"
#include "ui/theme/format.h"
#include "ui/widgets/translated.h"

#include <QDir>
#include <QFileInfo>

#include <algorithm>

namespace fuseline::ui {

namespace {

/// End to end, unfused over fused; nothing where only one of them was measured.
QString speedupText(const RunRecord& record) {
  const ComparisonRow row = compareSamples(record, "", &VariantRecord::endToEndNs);
  const bool hasBoth = row.unfused.count > 0 && row.fused.count > 0;
  return hasBoth ? formatSpeedup(row.speedup) : QString();
}

QString recipeText(const RunSpec& settings) { return settings.recipe == "None" ? QString() : toQt(settings.recipe); }

/// The facts that there are.
QString joined(QStringList facts) {
  facts.removeAll(QString());
  return facts.join(QStringLiteral(" · "));
}

/// A run file with the facts by which it may differ from others of its title.
struct ReadExample {
  MeasuredExample example;
  QString title;
  QStringList facts;
  QString speedup;
};

ReadExample readExample(const QFileInfo& file) {
  ReadExample read{.example = {.path = file.absoluteFilePath(), .line = file.fileName(), .text = file.fileName()}};
  const Result<RunRecord> record = loadRunRecord(read.example.path.toStdString());
  if (!record) {
    read.example.problem = toQt(record.error().message);
    return read;
  }
  const RunSpec& settings = record->settings;
  read.example.text = summaryOf(*record);
  read.title = toQt(record->title());
  read.facts = {settings.recipe == "None" ? translated("No quantization") : toQt(settings.recipe),
                toQt(nameOf(settings.pass)), toQt(nameOf(settings.timing)), symbolsText(settings),
                toQt(record->deviceName())};
  read.speedup = speedupText(*record);
  return read;
}

/// Its title, and what tells it from others of this title.
QString lineOf(const ReadExample& read, const std::vector<ReadExample>& all) {
  QStringList parts = {read.title, read.speedup};
  for (qsizetype fact = 0; fact < read.facts.size(); ++fact) {
    const bool isOther = std::ranges::any_of(all, [&](const ReadExample& other) {
      return other.title == read.title && !other.facts.isEmpty() && other.facts[fact] != read.facts[fact];
    });
    if (isOther) parts.insert(parts.size() - 1, read.facts[fact]);
  }
  return joined(parts);
}

}  // namespace

QString symbolsText(const RunSpec& settings) {
  QStringList symbols;
  for (const auto& [name, value] : settings.symbols)
    symbols.append(QStringLiteral("%1 = %2").arg(toQt(name)).arg(value));
  return symbols.join(QStringLiteral(", "));
}

QString summaryOf(const RunRecord& record) {
  const RunSpec& settings = record.settings;
  return joined({toQt(record.title()), toQt(record.deviceName()), toQt(nameOf(settings.pass)), recipeText(settings),
                 symbolsText(settings), speedupText(record)});
}

std::vector<MeasuredExample> measuredExamples(const QStringList& folders) {
  std::vector<ReadExample> read;
  for (const QString& folder : folders)
    for (const QFileInfo& file :
         QDir(folder).entryInfoList({QStringLiteral("*.fuserun")}, QDir::Files | QDir::Readable, QDir::Name))
      read.push_back(readExample(file));
  std::vector<MeasuredExample> examples;
  for (const ReadExample& each : read) {
    examples.push_back(each.example);
    if (!each.facts.isEmpty()) examples.back().line = lineOf(each, read);
  }
  return examples;
}

}  // namespace fuseline::ui
