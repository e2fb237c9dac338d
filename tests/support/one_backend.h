// A registry of one backend, for code that opens devices by their ids.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/backend.h"

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fuseline::testing {

class OneBackend final : public BackendRegistry {
 public:
  explicit OneBackend(std::shared_ptr<Backend> backend) : m_backend(std::move(backend)) {}
  std::vector<DeviceStatus> devices() const override { return {{.info = m_backend->device()}}; }
  Result<std::shared_ptr<Backend>> open(std::string_view deviceId) const override {
    if (deviceId == m_backend->device().id) return m_backend;
    return Error{"There is no device \"" + std::string(deviceId) + "\".", ErrorKind::NoDevice};
  }

 private:
  std::shared_ptr<Backend> m_backend;
};

}  // namespace fuseline::testing
