// Collectives as calls of NCCL.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/collective/nccl_communicator.h"

#include "core/collective/ordered_reduction.h"
#include "kernels/cuda/collective/rank_sum_launch.h"
#include "kernels/cuda/memory/arena.h"
#include "kernels/cuda/stream/stream_event.h"
#include "kernels/cuda/support/workspace.h"

#include <array>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace fuseline::cuda {

namespace {

/// Settings of NCCL that decide about times and bits.
constexpr std::array kSettings = {"NCCL_ALGO",          "NCCL_PROTO",       "NCCL_NVLS_ENABLE", "NCCL_MIN_CTAS",
                                  "NCCL_MAX_CTAS",      "NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE", "NCCL_IB_DISABLE",
                                  "NCCL_SOCKET_IFNAME", "NCCL_DEBUG"};

NcclType ncclTypeOf(DType dtype) {
  if (dtype == DType::F32) return NcclType::Float32;
  return dtype == DType::BF16 ? NcclType::Bfloat16 : NcclType::Float16;
}

NcclReduction reductionOf(Reduction reduction) {
  return reduction == Reduction::Sum ? NcclReduction::Sum : NcclReduction::Max;
}

std::size_t partCount(const CollectivePart& part) { return static_cast<std::size_t>(part.count); }
std::size_t partBytes(const CollectivePart& part, std::int64_t count) {
  return static_cast<std::size_t>(count * sizeBytes(part.dtype));
}

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(std::shared_ptr<NcclMembership> membership, SumOrder order, Stream stream, Stream besides)
      : m_membership(std::move(membership)), m_order(order), m_main(stream), m_besides(besides), m_stream(stream) {}

  int rank() const override { return host().rank(); }
  int size() const override { return host().size(); }
  void barrier() override { host().barrier(); }
  bool agree(bool holds) override { return host().agree(holds); }
  std::optional<std::string> failure() const override { return host().failure(); }
  void leave() noexcept override { m_membership->leave(); }
  void abort(std::string_view reason) noexcept override { host().abort(reason); }

  /// Earlier workspaces stay: recorded launches may use them.
  void prepare(const Collective& collective) override {
    if (!isOrdered(collective)) return;
    std::size_t bytes = 0;
    for (const CollectivePart& part : collective.parts) bytes += workspaceOf(collective.kind, part);
    if (bytes <= m_workspaceBytes) return;
    m_workspaces.push_back(std::make_unique<Arena>(bytes));
    m_workspaceBytes = bytes;
  }

  void run(const Collective& collective) override {
    m_membership->check();
    isOrdered(collective) ? addInOrder(collective) : callNccl(collective);
  }

  void begin(const Collective& collective) override {
    recordEvent(m_isReady, m_main);
    waitForEvent(m_besides, m_isReady);
    m_stream = m_besides;
    run(collective);
    m_stream = m_main;
    recordEvent(m_isDone, m_besides);
  }

  void await() override { waitForEvent(m_main, m_isDone); }

  std::vector<std::pair<std::string, std::string>> details() const override {
    int version = 0;
    nccl().version(&version);
    std::vector<std::pair<std::string, std::string>> facts = {
        {"communicator", fmt::format("NCCL {}", formatNcclVersion(version))},
        {"NCCL library", nccl().path},
        {"sums", m_order == SumOrder::Ranks ? "float32 in rank order, rounded once"
                                            : "in NCCL's order, rounded at each step (--deterministic: rank order)"}};
    for (const char* const name : kSettings)
      if (const char* const value = std::getenv(name)) facts.emplace_back(name, value);
    return facts;
  }

 private:
  Communicator& host() const { return m_membership->host(); }
  const Nccl& nccl() const { return m_membership->nccl(); }

  /// A maximum is the same in any order.
  bool isOrdered(const Collective& collective) const {
    const bool isReduced =
        collective.kind == CollectiveKind::ReduceScatter || collective.kind == CollectiveKind::AllReduce;
    return isReduced && collective.reduction == Reduction::Sum && m_order == SumOrder::Ranks;
  }

  /// Elements that rank `owner` adds.
  ElementRange ownedBy(int owner, CollectiveKind kind, const CollectivePart& part) const {
    if (kind == CollectiveKind::AllReduce) return sliceOf(part.count, owner, size());
    return {part.count * owner, part.count};
  }

  std::size_t workspaceOf(CollectiveKind kind, const CollectivePart& part) const {
    return workspacePart(partBytes(part, ownedBy(rank(), kind, part).count * size()));
  }

  /// In a group, so that no call waits for another one.
  void inGroup(const Collective& collective, const std::function<void()>& calls) {
    const std::string action = fmt::format("start the {} of {}", collectiveName(collective.kind), collective.name);
    m_membership->complete(nccl().groupStart(), action);
    calls();
    m_membership->complete(nccl().groupEnd(), action);
  }

  void callNccl(const Collective& collective) {
    inGroup(collective, [&] {
      for (const CollectivePart& part : collective.parts)
        part.rankStride > 0 ? gatherApart(part) : take(call(collective, part));
    });
  }

  /// A call within a group: all are in progress until the group ends.
  void take(NcclStatus status) {
    if (status != NcclStatus::InProgress) m_membership->complete(status, "start a collective");
  }

  NcclStatus call(const Collective& collective, const CollectivePart& part) {
    NcclHandle const handle = m_membership->handle();
    const NcclReduction reduction = reductionOf(collective.reduction);
    const NcclType type = ncclTypeOf(part.dtype);
    switch (collective.kind) {
      case CollectiveKind::AllGather:  // bytes: of any type
        return nccl().allGather(part.from, part.to, partBytes(part, part.count), NcclType::Uint8, handle, m_stream);
      case CollectiveKind::ReduceScatter:
        return nccl().reduceScatter(part.from, part.to, partCount(part), type, reduction, handle, m_stream);
      case CollectiveKind::AllReduce:
        return nccl().allReduce(part.from, part.to, partCount(part), type, reduction, handle, m_stream);
      case CollectiveKind::Broadcast: break;
    }
    return nccl().broadcast(part.from, part.to, partBytes(part, part.count), NcclType::Uint8, 0, handle, m_stream);
  }

  /// Sends elements of `from` and receives others, as bytes.
  void exchange(const CollectivePart& part, int peer, const std::byte* from, std::int64_t numSent, std::byte* to,
                std::int64_t numReceived) {
    NcclHandle const handle = m_membership->handle();
    if (numSent > 0) take(nccl().send(from, partBytes(part, numSent), NcclType::Uint8, peer, handle, m_stream));
    if (numReceived > 0)
      take(nccl().receive(to, partBytes(part, numReceived), NcclType::Uint8, peer, handle, m_stream));
  }

  /// NCCL gathers to places that follow each other only.
  void gatherApart(const CollectivePart& part) {
    for (int peer = 0; peer < size(); ++peer)
      exchange(part, peer, part.from, part.count, part.to + peer * part.strideBytes(), part.count);
  }

  void addInOrder(const Collective& collective) {
    inGroup(collective, [&] { forEachPart(collective, &NcclCommunicator::exchangeSlices); });
    forEachPart(collective, &NcclCommunicator::addSlice);
    if (collective.kind == CollectiveKind::AllReduce)
      inGroup(collective, [&] { forEachPart(collective, &NcclCommunicator::exchangeSums); });
  }

  using PartAction = void (NcclCommunicator::*)(CollectiveKind, const CollectivePart&, std::byte* workspace);

  void forEachPart(const Collective& collective, PartAction action) {
    std::byte* workspace = m_workspaces.empty() ? nullptr : m_workspaces.back()->data();
    for (const CollectivePart& part : collective.parts) {
      (this->*action)(collective.kind, part, workspace);
      workspace += workspaceOf(collective.kind, part);
    }
  }

  /// workspace: [ranks, elements of this rank's slice].
  void exchangeSlices(CollectiveKind kind, const CollectivePart& part, std::byte* workspace) {
    const std::int64_t own = ownedBy(rank(), kind, part).count;
    for (int peer = 0; peer < size(); ++peer) {
      const ElementRange theirs = ownedBy(peer, kind, part);
      exchange(part, peer, part.from + partBytes(part, theirs.first), theirs.count,
               workspace + partBytes(part, own * peer), own);
    }
  }

  void addSlice(CollectiveKind kind, const CollectivePart& part, std::byte* workspace) {
    const ElementRange own = ownedBy(rank(), kind, part);
    std::byte* const to = kind == CollectiveKind::AllReduce ? part.to + partBytes(part, own.first) : part.to;
    launchRankSum({.from = workspace, .to = to, .ranks = size(), .count = own.count}, part.dtype, m_stream);
  }

  void exchangeSums(CollectiveKind kind, const CollectivePart& part, std::byte* /*workspace*/) {
    const ElementRange own = ownedBy(rank(), kind, part);
    for (int peer = 0; peer < size(); ++peer) {
      if (peer == rank()) continue;
      const ElementRange theirs = ownedBy(peer, kind, part);
      exchange(part, peer, part.to + partBytes(part, own.first), own.count, part.to + partBytes(part, theirs.first),
               theirs.count);
    }
  }

  std::shared_ptr<NcclMembership> m_membership;
  SumOrder m_order;
  Stream m_main;
  Stream m_besides;
  Stream m_stream;  // one of the two
  OwnedEvent m_isReady = makeEvent();
  OwnedEvent m_isDone = makeEvent();
  std::vector<std::unique_ptr<Arena>> m_workspaces;
  std::size_t m_workspaceBytes = 0;  // of the last one
};

}  // namespace

std::unique_ptr<Communicator> makeNcclCommunicator(std::shared_ptr<NcclMembership> membership, SumOrder order,
                                                   Stream stream, Stream besides) {
  return std::make_unique<NcclCommunicator>(std::move(membership), order, stream, besides);
}

}  // namespace fuseline::cuda
