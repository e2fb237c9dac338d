// Places, fills and reads the tensors of a plan on a device.
// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/plan_memory.h"

#include "core/plan/column_views.h"
#include "core/runtime/attempt.h"
#include "core/support/text.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace fuseline {

namespace {

std::vector<std::string> tensorNames(const Plan& plan) {
  std::vector<std::string> names;
  for (const PlanTensor& tensor : plan.tensors) names.push_back(tensor.name);
  return names;
}

Error unknownTensor(std::string_view name, const Plan& plan) {
  return {fmt::format("{}: the plan has no tensor of this name; the nearest is \"{}\".", name,
                      nearest(name, tensorNames(plan)))};
}

/// Kernels may rely on the alignment that a plan gives all of its tensors.
bool isAligned(const std::byte* data) {
  constexpr std::uintptr_t kAlignment = 64;
  return reinterpret_cast<std::uintptr_t>(data) % kAlignment == 0;
}

Result<void> checkBuffer(const PlanTensor& wanted, const ResultBuffer& buffer) {
  if (!isResult(wanted.role))
    return Error{
        fmt::format("{}: expected an output, or a gradient of an input or a parameter; only these can have a buffer.",
                    wanted.name)};
  if (buffer.spec != wanted.spec)
    return Error{fmt::format("{}: the given buffer is {}, but the result is {}.", wanted.name, toString(buffer.spec),
                             toString(wanted.spec))};
  if (wanted.spec.bytes() > 0 && (!buffer.data || !isAligned(buffer.data)))
    return Error{fmt::format("{}: the given buffer begins at address {}; expected a multiple of 64 bytes.", wanted.name,
                             fmt::ptr(buffer.data))};
  return {};
}

Result<void> checkBinding(const PlanTensor& wanted, const Tensor* given) {
  if (!given) return Error{fmt::format("{}: the tensor is missing; expected {}.", wanted.name, toString(wanted.spec))};
  if (given->spec != wanted.spec)
    return Error{fmt::format("{}: the given tensor is {}, but the pipeline needs {}.", wanted.name,
                             toString(given->spec), toString(wanted.spec))};
  return {};
}

}  // namespace

bool isResult(TensorRole role) {
  return role == TensorRole::Output || role == TensorRole::InputGradient || role == TensorRole::ParameterGradient ||
         role == TensorRole::MainGradient;
}

bool isBound(TensorRole role) {
  return role == TensorRole::Input || role == TensorRole::Parameter || role == TensorRole::OutputGradient ||
         role == TensorRole::MainGradient || role == TensorRole::QuantizerState || role == TensorRole::OptimizerState;
}

Result<void> PlanMemory::place(std::span<const ResultBuffer> buffers) {
  for (const ResultBuffer& buffer : buffers) {
    const int tensor = m_plan.findTensor(buffer.tensor);
    if (tensor < 0) return unknownTensor(buffer.tensor, m_plan);
    const PlanTensor& wanted = m_plan.tensors[static_cast<std::size_t>(tensor)];
    if (Result<void> fits = checkBuffer(wanted, buffer); !fits) return fits;
    if (!m_given.emplace(wanted.storage, buffer.data).second)
      return Error{fmt::format("{}: two buffers were given for the same memory. Give one.", buffer.tensor)};
  }
  return {};
}

/// The bytes of both together, which an allocation of one would not tell.
Result<void> PlanMemory::checkFree(std::size_t workspaceBytes) const {
  const auto kernelBytes = static_cast<std::int64_t>(workspaceBytes);
  const std::optional<std::int64_t> free = m_backend.freeBytes();
  if (!free || m_plan.peakBytes() + kernelBytes <= *free) return {};
  return Error{
      fmt::format("{}: the plan needs {} of memory and its kernels {}, but only {} are free. Make the pipeline "
                  "smaller, or end other programs on the device.",
                  m_backend.device().id, formatBytes(m_plan.peakBytes()), formatBytes(kernelBytes), formatBytes(*free)),
      ErrorKind::RunFailed};
}

Result<void> PlanMemory::allocate(std::size_t workspaceBytes) {
  if (Result<void> fits = checkFree(workspaceBytes); !fits) return fits;
  const auto planBytes = static_cast<std::size_t>(m_plan.peakBytes());
  Result<std::unique_ptr<DeviceMemory>> memory = m_backend.allocate(std::max<std::size_t>(1, planBytes));
  if (!memory) return memory.error();
  m_memory = std::move(*memory);
  if (m_plan.hostBytes == 0) return {};
  Result<std::unique_ptr<DeviceMemory>> host = m_backend.allocateOnHost(static_cast<std::size_t>(m_plan.hostBytes));
  if (!host) return host.error();
  m_hostMemory = std::move(*host);
  return {};
}

Result<void> PlanMemory::upload(const NamedTensors& bindings) { return uploadRoles(bindings, isBound); }

Result<void> PlanMemory::restoreParameters(const NamedTensors& bindings) {
  if (std::ranges::count(m_plan.tensors, TensorRole::OptimizerState, &PlanTensor::role) == 0) return {};
  return uploadRoles(bindings, [](TensorRole role) {
    return role == TensorRole::Parameter || role == TensorRole::MainGradient || role == TensorRole::OptimizerState;
  });
}

Result<void> PlanMemory::uploadRoles(const NamedTensors& bindings, bool (*isWanted)(TensorRole)) {
  std::unordered_map<std::string_view, const Tensor*> byName;
  for (const auto& [name, tensor] : bindings) byName.emplace(name, &tensor);
  for (std::size_t index = 0; index < m_plan.tensors.size(); ++index) {
    const PlanTensor& wanted = m_plan.tensors[index];
    if (!isWanted(wanted.role)) continue;
    const auto found = byName.find(wanted.name);
    const Tensor* given = found == byName.end() ? nullptr : found->second;
    if (Result<void> fits = checkBinding(wanted, given); !fits) return fits;
    std::byte* const target = address(static_cast<int>(index));
    if (!target) continue;
    if (Result<void> copied = attempt([&] { m_backend.upload(target, given->data); }); !copied) return copied;
  }
  return {};
}

std::byte* PlanMemory::address(int tensor) const {
  const PlanTensor& planned = m_plan.tensors[static_cast<std::size_t>(tensor)];
  if (planned.spec.bytes() == 0 || planned.storage < 0 || planned.isInitialOnly) return nullptr;
  const std::int64_t first = firstByteOf(planned);
  if (const auto given = m_given.find(planned.storage); given != m_given.end()) return given->second + first;
  const Storage& storage = m_plan.storages[static_cast<std::size_t>(planned.storage)];
  return (storage.isOnHost ? m_hostMemory : m_memory)->data() + storage.offset + first;
}

Result<Tensor> PlanMemory::read(std::string_view tensorName) const {
  const int index = m_plan.findTensor(tensorName);
  if (index < 0) return unknownTensor(tensorName, m_plan);
  if (m_plan.tensors[static_cast<std::size_t>(index)].isInitialOnly)
    return Error{fmt::format("{0}: quantized_model_init stores it quantized only. Read {0}@rowwise.", tensorName)};
  Tensor tensor = Tensor::zeros(m_plan.tensors[static_cast<std::size_t>(index)].spec);
  const std::byte* const source = address(index);
  if (!source) return tensor;
  if (m_plan.tensors[static_cast<std::size_t>(index)].role == TensorRole::Offloaded) {
    std::memcpy(tensor.data.data(), source, tensor.data.size());
    return tensor;
  }
  std::vector<std::byte> columns(columnBytes(m_plan.tensors[static_cast<std::size_t>(index)]));
  const std::span<std::byte> host = columns.empty() ? std::span(tensor.data) : std::span(columns);
  if (Result<void> copied = attempt([&] { m_backend.download(host, source); }); !copied) return copied.error();
  if (!columns.empty()) gatherColumns(m_plan.tensors[static_cast<std::size_t>(index)], columns.data(), tensor.data);
  return tensor;
}

}  // namespace fuseline
