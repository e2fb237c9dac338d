// CapturedFile: tensors that a worker has written, mapped into memory; the file goes with it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/support/result.h"
#include "core/tensor/safetensors.h"

#include <QFile>
#include <QString>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace fuseline::ui {

class CapturedFile {
 public:
  /// Errors: those of safetensorsIndex(), or the file cannot be mapped.
  static Result<std::shared_ptr<const CapturedFile>> open(const QString& path);
  ~CapturedFile();
  CapturedFile(const CapturedFile&) = delete;
  CapturedFile& operator=(const CapturedFile&) = delete;

  /// Bytes of a tensor, valid for the lifetime of this object. Empty if it has no elements or is not in the file.
  std::span<const std::byte> bytesOf(std::string_view tensor) const;
  /// A copy, for files of other formats. Nothing: the file does not have it.
  std::optional<Tensor> tensor(std::string_view name) const;

 private:
  explicit CapturedFile(const QString& name) : m_file(name) {}
  const StoredTensor* find(std::string_view tensor) const;

  QFile m_file;
  std::vector<StoredTensor> m_index;
  const std::byte* m_bytes = nullptr;
};

}  // namespace fuseline::ui
