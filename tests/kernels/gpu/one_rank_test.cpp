// NCCL with a world of one: every call of several GPUs, on one of them.
// SPDX-License-Identifier: Apache-2.0
#include "core/collective/in_process.h"
#include "core/tensor/random_tensor.h"
#include "core/tensor/tensor.h"
#include "tests/support/cuda_test_backend.h"

#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace fuseline::testing {
namespace {

/// A group of one rank on the first GPU.
class OneRank : public ::testing::TestWithParam<SumOrder> {
 protected:
  void SetUp() override {
    const Result<std::shared_ptr<Backend>> backend = cudaTestBackend();
    if (!backend) GTEST_SKIP() << backend.error().message;
    m_backend = *backend;
    m_host = std::move(makeInProcessGroup(1).front());
    Result<std::unique_ptr<Communicator>> joined = m_backend->join(*m_host, GetParam());
    if (!joined && joined.error().message.find("does not load") != std::string::npos)
      GTEST_SKIP() << joined.error().message;
    ASSERT_TRUE(joined) << joined.error().message;
    m_communicator = std::move(*joined);
  }

  std::unique_ptr<DeviceMemory> memoryOf(const Tensor& tensor) {
    std::unique_ptr<DeviceMemory> memory = std::move(*m_backend->allocate(tensor.data.size()));
    m_backend->upload(memory->data(), tensor.data);
    return memory;
  }

  std::vector<std::byte> contentOf(DeviceMemory& memory) {
    std::vector<std::byte> content(memory.sizeBytes());
    m_backend->download(content, memory.data());
    return content;
  }

  std::shared_ptr<Backend> m_backend;
  std::unique_ptr<Communicator> m_host;
  std::unique_ptr<Communicator> m_communicator;
};

Tensor sample(DType dtype) { return randomNormal({.dtype = dtype, .shape = {1001}}, 3, "sample"); }

TEST_P(OneRank, CopiesWhatItGathersAndAdds) {
  for (const DType dtype : {DType::F32, DType::BF16, DType::F16})
    for (const CollectiveKind kind : {CollectiveKind::AllGather, CollectiveKind::ReduceScatter,
                                      CollectiveKind::AllReduce, CollectiveKind::Broadcast}) {
      const Tensor from = sample(dtype);
      const auto source = memoryOf(from);
      const auto target = memoryOf(Tensor::zeros(from.spec));
      const CollectivePart part{dtype, from.spec.numElements(), source->data(), target->data()};
      const Collective call{.kind = kind, .name = "sample", .parts = {&part, 1}};
      m_communicator->prepare(call);
      m_communicator->run(call);
      EXPECT_EQ(contentOf(*target), from.data) << collectiveName(kind) << " of " << dtypeName(dtype);
      m_backend->upload(target->data(), Tensor::zeros(from.spec).data);
      m_communicator->begin(call);  // on the second stream
      m_communicator->await();
      EXPECT_EQ(contentOf(*target), from.data) << collectiveName(kind) << " of " << dtypeName(dtype) << ", beside";
    }
}

TEST_P(OneRank, IsRecordedAndReplayed) {
  const Tensor from = sample(DType::BF16);
  const auto source = memoryOf(from);
  const auto target = memoryOf(Tensor::zeros(from.spec));
  const CollectivePart part{DType::BF16, from.spec.numElements(), source->data(), target->data()};
  const Collective call{.kind = CollectiveKind::AllReduce, .name = "sample", .parts = {&part, 1}};
  m_communicator->prepare(call);
  m_communicator->run(call);  // connects
  m_backend->synchronize();
  auto recorded = m_backend->record([&]() -> Result<void> {
    m_communicator->run(call);
    return {};
  });
  ASSERT_TRUE(recorded) << recorded.error().message;
  m_backend->upload(target->data(), Tensor::zeros(from.spec).data);
  for (int replay = 0; replay < 3; ++replay) (*recorded)->launch();
  m_backend->synchronize();
  EXPECT_EQ(contentOf(*target), from.data);
}

TEST_P(OneRank, CanLeaveAndJoinAgain) {
  m_communicator->leave();
  const CollectivePart none{};
  EXPECT_THROW(m_communicator->run({.name = "none", .parts = {&none, 1}}), CommunicationError);
  for (int time = 0; time < 3; ++time) {
    m_communicator.reset();
    Result<std::unique_ptr<Communicator>> again = m_backend->join(*m_host, GetParam());
    ASSERT_TRUE(again) << again.error().message;
    m_communicator = std::move(*again);
  }
  EXPECT_TRUE(m_communicator->agree(true));
  EXPECT_FALSE(m_communicator->agree(false));
}

INSTANTIATE_TEST_SUITE_P(Orders, OneRank, ::testing::Values(SumOrder::Library, SumOrder::Ranks), [](const auto& given) {
  return given.param == SumOrder::Ranks ? "InRankOrder" : "ByLibrary";
});

}  // namespace
}  // namespace fuseline::testing
