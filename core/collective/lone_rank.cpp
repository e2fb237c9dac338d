// Copies in place of communication.
// SPDX-License-Identifier: Apache-2.0
#include "core/collective/lone_rank.h"

#include <cstring>

namespace fuseline {

namespace {

class LoneRank final : public Communicator {
 public:
  LoneRank(int ranks, bool copies) : m_ranks(ranks), m_copies(copies) {}
  int rank() const override { return 0; }
  int size() const override { return m_ranks; }

  void run(const Collective& collective) override {
    if (!m_copies) return;
    const int copies = collective.kind == CollectiveKind::AllGather ? m_ranks : 1;
    for (const CollectivePart& part : collective.parts) {
      const auto bytes = static_cast<std::size_t>(part.count * sizeBytes(part.dtype));
      if (bytes == 0 || part.to == part.from) continue;
      for (int i = 0; i < copies; ++i) std::memcpy(part.to + i * part.strideBytes(), part.from, bytes);
    }
  }

  void barrier() override {}
  void abort(std::string_view) noexcept override {}
  std::vector<std::pair<std::string, std::string>> details() const override {
    return {{"communicator", "none: there are no other ranks"}, {"sums", "none: one rank"}};
  }

 private:
  int m_ranks;
  bool m_copies;
};

}  // namespace

std::shared_ptr<Communicator> makeLoneRank(int ranks) { return std::make_shared<LoneRank>(ranks, true); }

std::unique_ptr<Communicator> makeLoneDevice(int ranks) { return std::make_unique<LoneRank>(ranks, false); }

bool isLoneRank(const Communicator& communicator) { return dynamic_cast<const LoneRank*>(&communicator) != nullptr; }

}  // namespace fuseline
