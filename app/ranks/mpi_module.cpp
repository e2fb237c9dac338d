// dlopen of the module, the command line of mpirun.
// SPDX-License-Identifier: Apache-2.0
#include "app/ranks/mpi_module.h"

#include "app/ranks/blocked_signals.h"
#include "app/ranks/supervisor.h"
#include "kernels/mpi/module.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <dlfcn.h>
#include <netdb.h>
#include <unistd.h>

#include <fmt/format.h>

namespace fuseline {

namespace {

Error noMpi(const std::string& reason) {
  return {fmt::format("MPI: {} Ranks on one machine need no MPI: fuseline run FILE --ranks N.", reason),
          ErrorKind::NoDevice};
}

}  // namespace

Result<std::shared_ptr<Exchange>> joinMpi(std::optional<Seconds> rankTimeout) {
  std::error_code ignored;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path() / mpi::kModulePath;
  if (!std::filesystem::exists(path, ignored))
    return noMpi("this build has no MPI module. Install libopenmpi-dev and build again.");
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) return noMpi(fmt::format("its module does not load: {}. Install libopenmpi3.", dlerror()));
  auto* const handshake = reinterpret_cast<mpi::Handshake*>(dlsym(library, mpi::kHandshakeSymbol));
  auto* const join = reinterpret_cast<mpi::Join*>(dlsym(library, mpi::kJoinSymbol));
  if (!handshake || !join || std::string_view(handshake()) != mpi::kModuleHandshake)
    return noMpi("its module belongs to another build of Fuseline. Build both together.");
  const BlockedSignals blocked;  // one of a thread of MPI would end the process
  const char* problem = "";
  Exchange* const exchange = join(rankTimeout.value_or(Seconds(0.0)).count(), &problem);
  if (!exchange) return noMpi(problem);
  return std::shared_ptr<Exchange>(exchange);
}

namespace {

/// A host of --hosts, and the number of its ranks.
struct RankHost {
  std::string name;
  int ranks = 1;
};

Result<std::vector<RankHost>> rankHosts(const std::string& hosts) {
  std::vector<RankHost> found;
  std::istringstream texts(hosts);
  for (std::string text; std::getline(texts, text, ',');) {
    const std::size_t colon = std::min(text.find(':'), text.size());
    RankHost host{.name = text.substr(0, colon)};
    const std::string number = text.substr(std::min(colon + 1, text.size()));
    const auto [end, problem] = std::from_chars(number.data(), number.data() + number.size(), host.ranks);
    const bool isNumber = problem == std::errc() && end == number.data() + number.size() && host.ranks > 0;
    if (host.name.empty() || (colon < text.size() && !isNumber))
      return Error{fmt::format("--hosts {}: expected HOST[:N],... such as node1:2,node2:2.", hosts), ErrorKind::Usage};
    found.push_back(std::move(host));
  }
  return found;
}

Result<void> checkHosts(const std::vector<RankHost>& hosts, int ranks) {
  int room = 0;
  for (const RankHost& host : hosts) room += host.ranks;
  if (room >= ranks) return {};
  return Error{
      fmt::format("--ranks {}: --hosts has room for {}. Append the number of ranks to each host, such as {}:{}.", ranks,
                  room, hosts.front().name, ranks),
      ErrorKind::Usage};
}

bool isKnown(const std::string& host) {
  addrinfo* addresses = nullptr;
  if (getaddrinfo(host.c_str(), nullptr, nullptr, &addresses) != 0) return false;
  freeaddrinfo(addresses);
  return true;
}

Error unreached(const std::vector<RankHost>& hosts) {
  const auto unknown = std::ranges::find_if_not(hosts, isKnown, &RankHost::name);
  if (unknown != hosts.end())
    return {fmt::format("--hosts: {} is not a known host name, so mpirun cannot start ranks there.", unknown->name),
            ErrorKind::NoDevice};
  return {
      "mpirun cannot start ranks on all of --hosts. Check that `ssh HOST` works without a password, and that Open MPI "
      "is installed there.",
      ErrorKind::NoDevice};
}

}  // namespace

Result<int> startUnderMpi(int ranks, const std::string& hosts, std::ostream& err) {
  constexpr int kUnreached = 255;  // of mpirun itself
  const Result<std::vector<RankHost>> places = rankHosts(hosts);
  if (!places) return places.error();
  if (!hosts.empty())
    if (Result<void> fit = checkHosts(*places, ranks); !fit) return fit.error();
  std::vector<std::string> words = {"mpirun", "-n", std::to_string(ranks), "--bind-to", "none"};
  if (geteuid() == 0) words.emplace_back("--allow-run-as-root");
  if (hosts.empty()) words.emplace_back("--oversubscribe");
  if (!hosts.empty()) words.insert(words.end(), {"--host", hosts});
  std::error_code ignored;
  words.push_back(std::filesystem::read_symlink("/proc/self/exe", ignored).string());
  const std::vector<std::string> own = ownArguments();
  words.insert(words.end(), own.begin() + 1, own.end());
  // A rank that is killed while it holds the lock of PMIx's shared memory would leave mpirun waiting for ever.
  setenv("PMIX_MCA_gds", "hash", /*overwrite=*/0);
  Result<int> code = superviseMpirun(std::move(words), err);
  if (code && *code == kUnreached && !hosts.empty()) return unreached(*places);
  return code;
}

}  // namespace fuseline
