// NcclMembership: the communicator of one rank, from its beginning to its end or its abort.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/collective/communicator.h"
#include "kernels/cuda/collective/nccl.h"
#include "kernels/cuda/stream/stream.h"

#include <string>

namespace fuseline::cuda {

/// Used by the thread of its rank. No call blocks inside NCCL: another rank may have failed, which no library tells.
class NcclMembership {
 public:
  /// All ranks of `host` call it at once, each on its own selected device. Throws CommunicationError.
  NcclMembership(const Nccl& nccl, Communicator& host);
  /// All ranks end together; where one has failed, each by itself.
  ~NcclMembership();
  NcclMembership(const NcclMembership&) = delete;
  NcclMembership& operator=(const NcclMembership&) = delete;

  /// Throws CommunicationError if the group has ended.
  NcclHandle handle() const;
  const Nccl& nccl() const { return m_nccl; }
  Communicator& host() const { return m_host; }

  /// status: of a call of NCCL. Waits while it is in progress. Throws CommunicationError with NCCL's words.
  void complete(NcclStatus status, const std::string& action);
  /// Throws CommunicationError if a rank or NCCL has failed; then nothing of this rank waits for others any more.
  void check();
  /// Waits for the stream, and looks after the other ranks meanwhile. Gives CUDA's code. Throws CommunicationError,
  /// also when it takes longer than the host's patience: with the rank that is missing then. Where this rank's own
  /// device hangs, it does not return before that has ended.
  int waitFor(Stream stream);
  /// Ends what waits for other ranks on this rank's device.
  void leave() noexcept;

 private:
  bool hasEnded();
  void poll(const std::string& action);
  static void drain(Stream stream);
  [[noreturn]] void failLate(Stream stream);
  [[noreturn]] void fail(NcclStatus status, const std::string& action);

  Nccl m_nccl;
  Communicator& m_host;
  Patience m_patience = m_host.patience();
  NcclHandle m_handle = nullptr;
};

}  // namespace fuseline::cuda
