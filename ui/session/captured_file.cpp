// Maps files of tensors.
// SPDX-License-Identifier: Apache-2.0
#include "ui/session/captured_file.h"

#include <algorithm>

namespace fuseline::ui {

Result<std::shared_ptr<const CapturedFile>> CapturedFile::open(const QString& path) {
  const std::shared_ptr<CapturedFile> captured(new CapturedFile(path));
  Result<std::vector<StoredTensor>> index = safetensorsIndex(path.toStdString());
  if (!index) return index.error();
  captured->m_index = std::move(*index);
  if (!captured->m_file.open(QIODevice::ReadOnly))
    return Error{(path + QStringLiteral(": ") + captured->m_file.errorString()).toStdString(), ErrorKind::RunFailed};
  captured->m_bytes = reinterpret_cast<const std::byte*>(captured->m_file.map(0, captured->m_file.size()));
  if (!captured->m_bytes)
    return Error{
        QFile::tr("%1 could not be mapped into memory: %2.").arg(path, captured->m_file.errorString()).toStdString(),
        ErrorKind::RunFailed};
  return std::shared_ptr<const CapturedFile>(captured);
}

CapturedFile::~CapturedFile() { m_file.remove(); }

const StoredTensor* CapturedFile::find(std::string_view tensor) const {
  const auto found = std::ranges::find(m_index, tensor, &StoredTensor::name);
  return found == m_index.end() ? nullptr : &*found;
}

std::span<const std::byte> CapturedFile::bytesOf(std::string_view tensor) const {
  const StoredTensor* stored = find(tensor);
  if (!stored) return {};
  return {m_bytes + stored->begin, static_cast<std::size_t>(stored->end - stored->begin)};
}

std::optional<Tensor> CapturedFile::tensor(std::string_view name) const {
  const StoredTensor* stored = find(name);
  if (!stored) return std::nullopt;
  const std::span<const std::byte> bytes = bytesOf(name);
  return Tensor{.spec = stored->spec, .data = {bytes.begin(), bytes.end()}};
}

}  // namespace fuseline::ui
