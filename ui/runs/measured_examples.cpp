// Reads the folders of measured examples.
// SPDX-License-Identifier: Apache-2.0
#include "ui/runs/measured_examples.h"

#include "core/profile/run_file.h"
#include "ui/theme/format.h"

#include <QDir>
#include <QFileInfo>

namespace fuseline::ui {

namespace {

/// End to end, unfused over fused; nothing where only one of them was measured.
QString speedupText(const RunRecord& record) {
  const ComparisonRow row = compareSamples(record, "", &VariantRecord::endToEndNs);
  const bool hasBoth = row.unfused.count > 0 && row.fused.count > 0;
  return hasBoth ? formatSpeedup(row.speedup) : QString();
}

MeasuredExample exampleOf(const QFileInfo& file) {
  MeasuredExample example{.path = file.absoluteFilePath(), .text = file.fileName()};
  const Result<RunRecord> record = loadRunRecord(example.path.toStdString());
  if (record)
    example.text = summaryOf(*record);
  else
    example.problem = toQt(record.error().message);
  return example;
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
  QStringList parts = {toQt(record.title()),        toQt(record.deviceName()),
                       toQt(nameOf(settings.pass)), settings.recipe == "None" ? QString() : toQt(settings.recipe),
                       symbolsText(settings),       speedupText(record)};
  parts.removeAll(QString());
  return parts.join(QStringLiteral(" · "));
}

std::vector<MeasuredExample> measuredExamples(const QStringList& folders) {
  std::vector<MeasuredExample> examples;
  for (const QString& folder : folders)
    for (const QFileInfo& file :
         QDir(folder).entryInfoList({QStringLiteral("*.fuserun")}, QDir::Files | QDir::Readable, QDir::Name))
      examples.push_back(exampleOf(file));
  return examples;
}

}  // namespace fuseline::ui
