// Loads the CUDA module as programs do, and uses it on any machine, with a GPU or without.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/module.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>

namespace fuseline::cuda {
namespace {

class CudaModule : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto path = std::filesystem::read_symlink("/proc/self/exe").parent_path() / kModulePath;
    if (!std::filesystem::exists(path)) GTEST_SKIP() << "The CUDA module is not built: there was no nvcc.";
    m_library.reset(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL));
    ASSERT_TRUE(m_library) << dlerror();
  }

  template <class Function>
  Function* find(const char* symbol) const {
    return reinterpret_cast<Function*>(dlsym(m_library.get(), symbol));
  }

  std::unique_ptr<BackendRegistry, DestroyRegistry*> makeRegistry() const {
    return {find<CreateRegistry>(kCreateRegistrySymbol)(), find<DestroyRegistry>(kDestroyRegistrySymbol)};
  }

 private:
  struct Close {
    void operator()(void* library) const { dlclose(library); }
  };
  std::unique_ptr<void, Close> m_library;
};

TEST_F(CudaModule, OffersEveryEntryPoint) {
  EXPECT_TRUE(find<Handshake>(kHandshakeSymbol));
  EXPECT_TRUE(find<CreateRegistry>(kCreateRegistrySymbol));
  EXPECT_TRUE(find<DestroyRegistry>(kDestroyRegistrySymbol));
}

TEST_F(CudaModule, ShakesHandsWithAProgramOfTheSameBuild) {
  EXPECT_STREQ(kModuleHandshake, find<Handshake>(kHandshakeSymbol)());
}

TEST_F(CudaModule, NamesAtLeastOneDeviceAndSaysWhyOneCannotRun) {
  for (const DeviceStatus& device : makeRegistry()->devices()) {
    EXPECT_EQ(0u, device.info.id.rfind("cuda", 0)) << device.info.id;
    EXPECT_TRUE(device.canRun || device.canRun.reason().size() > 20u) << device.canRun.reason();
  }
  EXPECT_FALSE(makeRegistry()->devices().empty());
}

TEST_F(CudaModule, OpensADeviceOrRefusesWithTheReasonOfItsStatus) {
  const auto registry = makeRegistry();
  const DeviceStatus device = registry->devices().front();
  const auto backend = registry->open("cuda");
  ASSERT_EQ(static_cast<bool>(device.canRun), static_cast<bool>(backend));
  if (backend) return;
  EXPECT_EQ(ErrorKind::NoDevice, backend.error().kind);
  const std::string reason = device.canRun.reason();
  EXPECT_NE(std::string::npos, backend.error().message.find(reason)) << backend.error().message;
}

TEST_F(CudaModule, RefusesADeviceThatDoesNotExistByItsName) {
  const auto backend = makeRegistry()->open("cuda:99");
  ASSERT_FALSE(backend);
  EXPECT_EQ(ErrorKind::NoDevice, backend.error().kind);
  EXPECT_NE(std::string::npos, backend.error().message.find("cuda:99"));
}

TEST_F(CudaModule, KeepsItsInsidesToItself) { EXPECT_FALSE(find<void()>("_ZN8fuseline4cuda15discoverDevicesEv")); }

}  // namespace
}  // namespace fuseline::cuda
