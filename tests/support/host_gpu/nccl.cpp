// Collectives run on the thread that completes them, when the streams of all ranks have reached them.
// SPDX-License-Identifier: Apache-2.0
#include "tests/support/host_gpu/nccl.h"

#include "core/collective/ordered_reduction.h"
#include "kernels/cuda/collective/nccl.h"
#include "tests/support/host_gpu/host_gpu.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace fuseline::host_gpu {

namespace {

using namespace cuda;

enum class Kind { AllGather, ReduceScatter, AllReduce, Broadcast, Send, Receive };

struct Call {
  Kind kind;
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  std::size_t count = 0;
  NcclType type = NcclType::Uint8;
  NcclReduction reduction = NcclReduction::Sum;
  int peer = 0;

  std::size_t bytes() const { return count * (type == NcclType::Uint8 ? 1 : type == NcclType::Float32 ? 4 : 2); }
  DType dtype() const {
    if (type == NcclType::Float32) return DType::F32;
    return type == NcclType::Bfloat16 ? DType::BF16 : DType::F16;
  }
  bool isPointToPoint() const { return kind == Kind::Send || kind == Kind::Receive; }
};

/// Calls of one group of one rank.
struct Batch {
  std::vector<Call> calls;
  bool isCaptured = false;
};

struct Meeting {
  std::map<int, std::shared_ptr<const Batch>> batches;  // by rank
  bool isOver = false;
};

struct Group {
  int ranks = 0;
  std::map<int, int> devices;  // by rank: of those that came
  std::set<int> finalized;
  std::map<std::uint64_t, Meeting> meetings;
  NcclStatus state = NcclStatus::Success;
  std::string problem;
};

}  // namespace

}  // namespace fuseline::host_gpu

struct ncclComm {
  std::shared_ptr<fuseline::host_gpu::Group> group;
  int rank = 0;
  int device = 0;
  std::uint64_t next = 0;  // meeting
  int untilFailure = -1;
  int untilHang = -1;
  bool hangs = false;
  fuseline::cuda::NcclStatus state = fuseline::cuda::NcclStatus::InProgress;
  bool isFinalized = false;
  bool isAborted = false;
  std::shared_ptr<fuseline::host_gpu::Batch> pending;  // a group that has ended and is not launched yet
  fuseline::cuda::Stream stream = nullptr;
  int polls = 0;
};

namespace fuseline::host_gpu {

namespace {

using CommPointer = std::shared_ptr<ncclComm>;

struct Library {
  std::mutex mutex;
  int version = 22809;
  std::uint64_t nextId = 1;
  std::map<std::uint64_t, std::shared_ptr<Group>> groups;
  std::map<NcclHandle, CommPointer> comms;
  std::map<int, int> failures;  // by rank
  std::map<int, int> hangs;     // by rank
  std::vector<CommPointer> hung;
  std::size_t numCollectives = 0;
  std::size_t numReplayed = 0;
};

Library& library() {
  static Library& only = *[] {
    auto* const made = new Library();
    if (const char* const version = std::getenv("FUSELINE_HOST_NCCL")) made->version = std::atoi(version);
    return made;
  }();
  return only;
}

thread_local int t_groupDepth = 0;
thread_local std::vector<std::pair<CommPointer, std::pair<Stream, Call>>> t_calls;

CommPointer find(NcclHandle handle) {
  const auto found = library().comms.find(handle);
  return found == library().comms.end() ? nullptr : found->second;
}

// ---- Data

const Call& callOf(const Meeting& meeting, int rank, std::size_t index) {
  return meeting.batches.at(rank)->calls[index];
}

bool isEqual(const Call& a, const Call& b) {
  return a.kind == b.kind && a.count == b.count && a.type == b.type && a.reduction == b.reduction;
}

/// Point-to-point calls meet their counterparts in any order.
bool fitsTogether(const Meeting& meeting, int ranks) {
  const Batch& first = *meeting.batches.at(0);
  for (int rank = 1; rank < ranks; ++rank) {
    const Batch& other = *meeting.batches.at(rank);
    if (other.isCaptured != first.isCaptured) return false;
    if (!first.calls.empty() && first.calls.front().isPointToPoint()) continue;
    if (!std::ranges::equal(other.calls, first.calls, isEqual)) return false;
  }
  return true;
}

void gather(const Meeting& meeting, int ranks, std::size_t index) {
  for (int to = 0; to < ranks; ++to)
    for (int from = 0; from < ranks; ++from) {
      const Call& source = callOf(meeting, from, index);
      std::memmove(callOf(meeting, to, index).to + static_cast<std::size_t>(from) * source.bytes(), source.from,
                   source.bytes());
    }
}

/// Like a ring: from rank 1 on, rounded at every rank.
std::vector<std::byte> reduced(const Meeting& meeting, int ranks, std::size_t index, std::size_t first,
                               std::size_t count) {
  const Call& own = callOf(meeting, 0, index);
  const std::size_t size = own.count == 0 ? 0 : own.bytes() / own.count;
  const auto partOf = [&](int rank) { return callOf(meeting, rank % ranks, index).from + first * size; };
  std::vector<std::byte> total(partOf(1), partOf(1) + count * size);
  const Reduction reduction = own.reduction == NcclReduction::Sum ? Reduction::Sum : Reduction::Max;
  for (int rank = 2; rank <= ranks; ++rank) {
    const std::byte* const both[] = {total.data(), partOf(rank)};
    reduceInRankOrder(reduction, own.dtype(), both, static_cast<std::int64_t>(count), total.data());
  }
  return total;
}

void reduce(const Meeting& meeting, int ranks, std::size_t index) {
  std::vector<std::vector<std::byte>> results;
  for (int rank = 0; rank < ranks; ++rank) {
    const Call& own = callOf(meeting, rank, index);
    const bool isScattered = own.kind == Kind::ReduceScatter;
    results.push_back(
        reduced(meeting, ranks, index, isScattered ? static_cast<std::size_t>(rank) * own.count : 0, own.count));
  }
  for (int rank = 0; rank < ranks; ++rank)
    std::ranges::copy(results[static_cast<std::size_t>(rank)], callOf(meeting, rank, index).to);
}

void broadcast(const Meeting& meeting, int ranks, std::size_t index) {
  const Call& root = callOf(meeting, callOf(meeting, 0, index).peer, index);
  for (int rank = 0; rank < ranks; ++rank) std::memmove(callOf(meeting, rank, index).to, root.from, root.bytes());
}

/// The sends of a rank to another one, in their order, meet the receives there.
bool sendAll(const Meeting& meeting, int ranks) {
  for (int from = 0; from < ranks; ++from)
    for (int to = 0; to < ranks; ++to) {
      std::vector<Call> sends, receives;
      for (const Call& call : meeting.batches.at(from)->calls)
        if (call.kind == Kind::Send && call.peer == to) sends.push_back(call);
      for (const Call& call : meeting.batches.at(to)->calls)
        if (call.kind == Kind::Receive && call.peer == from) receives.push_back(call);
      if (sends.size() != receives.size()) return false;
      for (std::size_t i = 0; i < sends.size(); ++i) {
        if (sends[i].bytes() != receives[i].bytes()) return false;
        std::memmove(receives[i].to, sends[i].from, sends[i].bytes());
      }
    }
  return true;
}

bool exchange(const Meeting& meeting, int ranks) {
  if (!fitsTogether(meeting, ranks)) return false;
  const std::vector<Call>& calls = meeting.batches.at(0)->calls;
  if (!calls.empty() && calls.front().isPointToPoint()) return sendAll(meeting, ranks);
  for (std::size_t index = 0; index < calls.size(); ++index) switch (calls[index].kind) {
      case Kind::AllGather: gather(meeting, ranks, index); break;
      case Kind::Broadcast: broadcast(meeting, ranks, index); break;
      default: reduce(meeting, ranks, index);
    }
  return true;
}

// ---- Streams

void complete(Group& group, Meeting& meeting) {
  if (!exchange(meeting, group.ranks)) {
    group.state = NcclStatus::InvalidUsage;
    group.problem = "The ranks called different collectives";
  }
  meeting.isOver = true;
  ++library().numCollectives;
  if (meeting.batches.at(0)->isCaptured) ++library().numReplayed;
}

/// The stream of a rank has reached a batch: yes when it is done.
bool advance(ncclComm& comm, const std::shared_ptr<const Batch>& batch, std::optional<std::uint64_t>& ticket) {
  const std::lock_guard lock(library().mutex);
  Group& group = *comm.group;
  if (!ticket && comm.untilHang >= 0 && comm.untilHang-- == 0) comm.hangs = true;
  if (comm.hangs) return false;
  if (comm.isAborted) return true;
  if (!ticket) {
    if (comm.untilFailure >= 0 && comm.untilFailure-- == 0) comm.state = NcclStatus::SystemError;
    ticket = comm.next++;
    group.meetings[*ticket].batches[comm.rank] = batch;
  }
  if (comm.state == NcclStatus::SystemError) return false;  // its kernel never ends
  Meeting& meeting = group.meetings[*ticket];
  if (static_cast<int>(meeting.batches.size()) < group.ranks) return false;
  if (!meeting.isOver) complete(group, meeting);
  ticket.reset();
  return true;
}

void launchPending(const CommPointer& comm, const std::shared_ptr<Batch>& batch, Stream stream) {
  submitWaiting(stream, [comm, batch, ticket = std::make_shared<std::optional<std::uint64_t>>()] {
    return advance(*comm, batch, *ticket);
  });
}

// ---- Calls

NcclStatus version(int* version) { return *version = library().version, NcclStatus::Success; }

const char* errorString(NcclStatus status) {
  switch (status) {
    case NcclStatus::Success: return "no error";
    case NcclStatus::SystemError: return "unhandled system error";
    case NcclStatus::InvalidArgument: return "invalid argument";
    case NcclStatus::InvalidUsage: return "invalid usage";
    case NcclStatus::RemoteError: return "remote process exited or there was a network error";
    case NcclStatus::InProgress: return "NCCL operation in progress";
  }
  return "another error";
}

const char* lastError(NcclHandle handle) {
  const std::lock_guard lock(library().mutex);
  const CommPointer comm = find(handle);
  return comm ? comm->group->problem.c_str() : "";
}

NcclStatus makeId(NcclId* id) {
  const std::lock_guard lock(library().mutex);
  *id = {};
  const std::uint64_t number = library().nextId++;
  std::memcpy(id->bytes, &number, sizeof(number));
  return NcclStatus::Success;
}

void welcome(Group& group, const ncclComm& comm) {
  for (const auto& [rank, device] : group.devices)
    if (device == comm.device) {
      group.state = NcclStatus::InvalidUsage;
      group.problem = "Duplicate GPU detected";
    }
  group.devices[comm.rank] = comm.device;
}

NcclStatus initRank(NcclHandle* handle, int ranks, NcclId id, int rank, NcclConfig* config) {
  if (config->size != sizeof(NcclConfig) || config->magic != 0xcafebeef || config->isBlocking != 0)
    return NcclStatus::InvalidArgument;
  const int device = currentDevice();
  const std::lock_guard lock(library().mutex);
  std::uint64_t number = 0;
  std::memcpy(&number, id.bytes, sizeof(number));
  std::shared_ptr<Group>& group = library().groups[number];
  if (!group) group = std::make_shared<Group>(Group{.ranks = ranks});
  const auto comm = std::make_shared<ncclComm>(ncclComm{.group = group, .rank = rank, .device = device});
  if (const auto failure = library().failures.find(rank); failure != library().failures.end()) {
    comm->untilFailure = failure->second;
    library().failures.erase(failure);
  }
  if (const auto hang = library().hangs.find(rank); hang != library().hangs.end()) {
    comm->untilHang = hang->second;
    library().hangs.erase(hang);
    library().hung.push_back(comm);
  }
  welcome(*group, *comm);
  library().comms[comm.get()] = comm;
  *handle = comm.get();
  return NcclStatus::InProgress;
}

NcclStatus stateOf(ncclComm& comm) {
  const Group& group = *comm.group;
  if (group.state != NcclStatus::Success) return group.state;
  if (static_cast<int>(group.devices.size()) < group.ranks) return NcclStatus::InProgress;
  if (comm.isFinalized)
    return static_cast<int>(group.finalized.size()) < group.ranks ? NcclStatus::InProgress : NcclStatus::Success;
  if (comm.pending) return NcclStatus::InProgress;
  if (comm.state == NcclStatus::InProgress) comm.state = NcclStatus::Success;
  return comm.state;
}

/// A group is launched at the second question after its end.
NcclStatus asyncError(NcclHandle handle, NcclStatus* state) {
  std::shared_ptr<Batch> batch;
  CommPointer comm;
  {
    const std::lock_guard lock(library().mutex);
    comm = find(handle);
    if (!comm) return NcclStatus::InvalidArgument;
    if (comm->pending && ++comm->polls >= 2) batch = std::exchange(comm->pending, nullptr);
    *state = stateOf(*comm);
  }
  if (batch) launchPending(comm, batch, comm->stream);
  return NcclStatus::Success;
}

NcclStatus finalize(NcclHandle handle) {
  const std::lock_guard lock(library().mutex);
  const CommPointer comm = find(handle);
  if (!comm) return NcclStatus::InvalidArgument;
  comm->isFinalized = true;
  comm->group->finalized.insert(comm->rank);
  return NcclStatus::InProgress;
}

NcclStatus destroy(NcclHandle handle) {
  const std::lock_guard lock(library().mutex);
  return library().comms.erase(handle) == 1 ? NcclStatus::Success : NcclStatus::InvalidArgument;
}

NcclStatus abort(NcclHandle handle) {
  const std::lock_guard lock(library().mutex);
  if (const CommPointer comm = find(handle)) comm->isAborted = true;
  return library().comms.erase(handle) == 1 ? NcclStatus::Success : NcclStatus::InvalidArgument;
}

NcclStatus groupStart() { return ++t_groupDepth, NcclStatus::Success; }

NcclStatus groupEnd() {
  if (--t_groupDepth > 0) return NcclStatus::Success;
  const auto calls = std::exchange(t_calls, {});
  if (calls.empty()) return NcclStatus::Success;
  const CommPointer& comm = calls.front().first;
  const auto batch = std::make_shared<Batch>();
  batch->isCaptured = isCapturing(calls.front().second.first);
  for (const auto& [owner, call] : calls) {
    if (owner != comm || call.first != calls.front().second.first) return NcclStatus::InvalidUsage;
    batch->calls.push_back(call.second);
  }
  const std::lock_guard lock(library().mutex);
  comm->pending = batch;
  comm->stream = calls.front().second.first;
  comm->polls = 0;
  return NcclStatus::InProgress;
}

NcclStatus add(NcclHandle handle, Stream stream, const Call& call, std::size_t fromBytes, std::size_t toBytes) {
  CommPointer comm;
  {
    const std::lock_guard lock(library().mutex);
    comm = find(handle);
  }
  if (!comm || t_groupDepth == 0) return NcclStatus::InvalidArgument;
  if (deviceOf(stream) != comm->device || currentDevice() != comm->device) return NcclStatus::InvalidUsage;
  if (fromBytes > 0 && !isDeviceMemory(call.from, fromBytes)) return NcclStatus::InvalidArgument;
  if (toBytes > 0 && !isDeviceMemory(call.to, toBytes)) return NcclStatus::InvalidArgument;
  t_calls.push_back({comm, {stream, call}});
  return NcclStatus::Success;
}

std::size_t ranksOf(NcclHandle handle) {
  const std::lock_guard lock(library().mutex);
  const CommPointer comm = find(handle);
  return comm ? static_cast<std::size_t>(comm->group->ranks) : 0;
}

Call callWith(Kind kind, const void* from, void* to, std::size_t count, NcclType type) {
  return {.kind = kind,
          .from = static_cast<const std::byte*>(from),
          .to = static_cast<std::byte*>(to),
          .count = count,
          .type = type};
}

NcclStatus allGather(const void* from, void* to, std::size_t count, NcclType type, NcclHandle comm, Stream stream) {
  const Call call = callWith(Kind::AllGather, from, to, count, type);
  return add(comm, stream, call, call.bytes(), call.bytes() * ranksOf(comm));
}

NcclStatus reduceScatter(const void* from, void* to, std::size_t count, NcclType type, NcclReduction reduction,
                         NcclHandle comm, Stream stream) {
  Call call = callWith(Kind::ReduceScatter, from, to, count, type);
  call.reduction = reduction;
  return add(comm, stream, call, call.bytes() * ranksOf(comm), call.bytes());
}

NcclStatus allReduce(const void* from, void* to, std::size_t count, NcclType type, NcclReduction reduction,
                     NcclHandle comm, Stream stream) {
  Call call = callWith(Kind::AllReduce, from, to, count, type);
  call.reduction = reduction;
  return add(comm, stream, call, call.bytes(), call.bytes());
}

NcclStatus broadcastFrom(const void* from, void* to, std::size_t count, NcclType type, int root, NcclHandle comm,
                         Stream stream) {
  Call call = callWith(Kind::Broadcast, from, to, count, type);
  call.peer = root;
  return add(comm, stream, call, call.bytes(), call.bytes());
}

NcclStatus send(const void* from, std::size_t count, NcclType type, int peer, NcclHandle comm, Stream stream) {
  Call call = callWith(Kind::Send, from, nullptr, count, type);
  call.peer = peer;
  return add(comm, stream, call, call.bytes(), 0);
}

NcclStatus receive(void* to, std::size_t count, NcclType type, int peer, NcclHandle comm, Stream stream) {
  Call call = callWith(Kind::Receive, nullptr, to, count, type);
  call.peer = peer;
  return add(comm, stream, call, 0, call.bytes());
}

}  // namespace

int setNcclVersion(int version) {
  const std::lock_guard lock(library().mutex);
  return std::exchange(library().version, version);
}

void hangInCollective(int rank, int count) {
  const std::lock_guard lock(library().mutex);
  library().hangs[rank] = count;
}

void releaseHungDevices() {
  const std::lock_guard lock(library().mutex);
  for (const CommPointer& comm : library().hung) comm->hangs = false;
  library().hung.clear();
}

void failInCollective(int rank, int count) {
  const std::lock_guard lock(library().mutex);
  library().failures[rank] = count;
}

std::size_t numCommunicators() {
  const std::lock_guard lock(library().mutex);
  return library().comms.size();
}

std::size_t numCollectives() {
  const std::lock_guard lock(library().mutex);
  return library().numCollectives;
}

std::size_t numReplayedCollectives() {
  const std::lock_guard lock(library().mutex);
  return library().numReplayed;
}

}  // namespace fuseline::host_gpu

namespace fuseline::cuda {

Result<Nccl> loadNccl() {
  using namespace host_gpu;
  if (library().version == 0)
    return Error{"libnccl.so.2 does not load: the GPUs of host memory have none.", ErrorKind::NoDevice};
  return Nccl{.version = version,
              .errorString = errorString,
              .lastError = lastError,
              .makeId = makeId,
              .initRank = initRank,
              .asyncError = asyncError,
              .finalize = finalize,
              .destroy = destroy,
              .abort = host_gpu::abort,
              .groupStart = groupStart,
              .groupEnd = groupEnd,
              .allGather = allGather,
              .reduceScatter = reduceScatter,
              .allReduce = allReduce,
              .broadcast = broadcastFrom,
              .send = host_gpu::send,
              .receive = receive,
              .path = "libnccl.so.2 of host memory"};
}

}  // namespace fuseline::cuda
