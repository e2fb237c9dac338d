// Exchange: bytes between ranks that are processes. The collectives of their communicators are made of it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/collective/communicator.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fuseline {

/// Another rank is the cause of a failure.
struct PeerFault {
  int rank = 0;
  std::string sentence;
  bool isReported = false;  // by the rank itself, which lives
};

/// Used by one thread at a time. All ranks make the same calls.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Sends out[r] to each other rank r, and fills in[r] with the bytes from there, which are as many as are sent. The
  /// entries of the rank itself are not used. Throws CommunicationError, also when a rank has ended or does not come.
  virtual void exchange(std::span<const std::span<const std::byte>> out, std::span<const std::span<std::byte>> in,
                        std::string_view name) = 0;
  /// Tells the other ranks why this one ends; their exchanges throw.
  virtual void abort(std::string_view reason) noexcept = 0;
  virtual std::optional<PeerFault> fault() const = 0;
  virtual std::vector<std::pair<std::string, std::string>> details() const = 0;
};

/// Sums are those of the group in process, bit by bit.
std::unique_ptr<Communicator> makeExchangeCommunicator(std::shared_ptr<Exchange> exchange);

/// A text of every rank, by rank.
std::vector<std::string> gatherTexts(Communicator& communicator, std::string_view own, std::string_view name);

}  // namespace fuseline
