// Collectives out of exchanges: every rank adds its slice, so that no rank sends more than a ring would.
// SPDX-License-Identifier: Apache-2.0
#include "core/collective/exchange.h"

#include "core/collective/beside_thread.h"
#include "core/collective/ordered_reduction.h"

#include <algorithm>
#include <cstring>

namespace fuseline {

namespace {

using ConstBytes = std::span<const std::byte>;
using Bytes = std::span<std::byte>;

std::size_t lengthOf(const CollectivePart& part, std::int64_t count) {
  return static_cast<std::size_t>(count * sizeBytes(part.dtype));
}

ConstBytes sliceFrom(const CollectivePart& part, const ElementRange& range) {
  return {part.from + lengthOf(part, range.first), lengthOf(part, range.count)};
}

class ExchangeCommunicator final : public Communicator {
 public:
  explicit ExchangeCommunicator(std::shared_ptr<Exchange> exchange) : m_exchange(std::move(exchange)) {}

  int rank() const override { return m_exchange->rank(); }
  int size() const override { return m_exchange->size(); }

  void run(const Collective& collective) override {
    m_name = collective.name;
    for (const CollectivePart& part : collective.parts) run(collective, part);
  }

  void begin(const Collective& collective) override {
    m_beside.begin([this, collective] { run(collective); });
  }
  void await() override { m_beside.await(); }
  std::optional<BesideSpan> besideSpan() const override { return m_beside.span(); }
  void leave() noexcept override { m_beside.settle(); }

  /// A rank that has a byte of every other one knows that all have come.
  void barrier() override {
    m_name = "the start of a run";
    std::vector<std::byte> bytes(ranks());
    std::vector<ConstBytes> out(ranks(), ConstBytes(bytes).first(1));
    std::vector<Bytes> in;
    for (std::byte& byte : bytes) in.emplace_back(&byte, 1);
    std::byte own{};
    std::ranges::fill(out, ConstBytes(&own, 1));
    m_exchange->exchange(out, in, m_name);
  }

  std::optional<std::string> failure() const override {
    const std::optional<PeerFault> fault = m_exchange->fault();
    return fault ? std::optional(fault->sentence) : std::nullopt;
  }
  void abort(std::string_view reason) noexcept override { m_exchange->abort(reason); }

  std::vector<std::pair<std::string, std::string>> details() const override {
    auto facts = m_exchange->details();
    facts.emplace_back("sums", "float32 in rank order, rounded once");
    return facts;
  }

 private:
  std::size_t ranks() const { return static_cast<std::size_t>(size()); }

  void run(const Collective& collective, const CollectivePart& part) {
    switch (collective.kind) {
      case CollectiveKind::AllGather: return gather(part);
      case CollectiveKind::ReduceScatter: return reduceScatter(collective.reduction, part);
      case CollectiveKind::AllReduce: return allReduce(collective.reduction, part);
      case CollectiveKind::Broadcast: return broadcast(part);
    }
  }

  static void copy(std::byte* to, ConstBytes from) {
    if (!from.empty() && to != from.data()) std::memmove(to, from.data(), from.size());
  }

  void gather(const CollectivePart& part) {
    const ConstBytes own(part.from, lengthOf(part, part.count));
    std::vector<Bytes> in;
    for (int rank = 0; rank < size(); ++rank) in.emplace_back(part.to + rank * part.strideBytes(), own.size());
    m_exchange->exchange(std::vector<ConstBytes>(ranks(), own), in, m_name);
    copy(in[static_cast<std::size_t>(rank())].data(), own);
  }

  /// sliceOfRank(r): the elements that rank r adds, into `out`.
  template <class Slice>
  void reduce(Reduction reduction, const CollectivePart& part, const Slice& sliceOfRank, std::byte* out) {
    std::vector<ConstBytes> sent;
    for (int rank = 0; rank < size(); ++rank) sent.push_back(sliceFrom(part, sliceOfRank(rank)));
    const ElementRange own = sliceOfRank(rank());
    const std::size_t bytes = lengthOf(part, own.count);
    m_received.resize(bytes * ranks());
    std::vector<Bytes> in;
    for (std::size_t rank = 0; rank < ranks(); ++rank) in.emplace_back(m_received.data() + rank * bytes, bytes);
    m_exchange->exchange(sent, in, m_name);
    if (own.count == 0) return;
    std::vector<const std::byte*> contributions;
    for (int rank = 0; rank < size(); ++rank)
      contributions.push_back(rank == this->rank() ? sent[static_cast<std::size_t>(rank)].data()
                                                   : in[static_cast<std::size_t>(rank)].data());
    reduceInRankOrder(reduction, part.dtype, contributions, own.count, out);
  }

  void reduceScatter(Reduction reduction, const CollectivePart& part) {
    reduce(
        reduction, part,
        [&](int rank) {
          return ElementRange{part.count * rank, part.count};
        },
        part.to);
  }

  void allReduce(Reduction reduction, const CollectivePart& part) {
    const auto slice = [&](int rank) { return sliceOf(part.count, rank, size()); };
    const ElementRange own = slice(rank());
    reduce(reduction, part, slice, part.to + lengthOf(part, own.first));
    std::vector<Bytes> in;
    for (int rank = 0; rank < size(); ++rank)
      in.emplace_back(part.to + lengthOf(part, slice(rank).first), lengthOf(part, slice(rank).count));
    const ConstBytes sum = in[static_cast<std::size_t>(rank())];
    m_exchange->exchange(std::vector<ConstBytes>(ranks(), sum), in, m_name);
  }

  void broadcast(const CollectivePart& part) {
    const std::size_t bytes = lengthOf(part, part.count);
    std::vector<ConstBytes> out(ranks());
    std::vector<Bytes> in(ranks());
    if (rank() == 0)
      std::ranges::fill(out, ConstBytes(part.from, bytes));
    else
      in.front() = Bytes(part.to, bytes);
    m_exchange->exchange(out, in, m_name);
    if (rank() == 0) copy(part.to, {part.from, bytes});
  }

  std::shared_ptr<Exchange> m_exchange;
  std::string m_name;
  std::vector<std::byte> m_received;
  BesideThread m_beside;  // last: it uses the others
};

void gatherBytes(Communicator& communicator, std::span<const std::byte> own, std::byte* all, std::string_view name) {
  const CollectivePart part{DType::U8, static_cast<std::int64_t>(own.size()), own.data(), all};
  communicator.run({.kind = CollectiveKind::AllGather, .name = name, .parts = std::span(&part, 1)});
}

}  // namespace

std::unique_ptr<Communicator> makeExchangeCommunicator(std::shared_ptr<Exchange> exchange) {
  return std::make_unique<ExchangeCommunicator>(std::move(exchange));
}

std::vector<std::string> gatherTexts(Communicator& communicator, std::string_view own, std::string_view name) {
  const auto ranks = static_cast<std::size_t>(communicator.size());
  const std::uint64_t length = own.size();
  std::vector<std::uint64_t> lengths(ranks);
  gatherBytes(communicator, std::as_bytes(std::span(&length, 1)), std::as_writable_bytes(std::span(lengths)).data(),
              name);
  const std::size_t longest = *std::ranges::max_element(lengths);
  std::string padded(own);
  padded.resize(longest);
  std::string all(longest * ranks, '\0');
  gatherBytes(communicator, std::as_bytes(std::span(padded)), std::as_writable_bytes(std::span(all)).data(), name);
  std::vector<std::string> texts;
  for (std::size_t rank = 0; rank < ranks; ++rank) texts.push_back(all.substr(rank * longest, lengths[rank]));
  return texts;
}

}  // namespace fuseline
