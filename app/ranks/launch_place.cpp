// Reads the variables of every launcher in turn. The first complete set counts.
// SPDX-License-Identifier: Apache-2.0
#include "app/ranks/launch_place.h"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>

namespace fuseline {

namespace {

struct LauncherVariables {
  const char* launcher;
  RankTransport transport;
  const char* rank;
  const char* size;
  const char* localSize;
  const char* needed;  // without it the others do not count
};

/// A shell of Slurm has a SLURM_PROCID, too, but no step.
constexpr std::array kLaunchers = {
    LauncherVariables{"fuseline", RankTransport::InheritedSockets, kRankVariable, kRanksVariable, kRanksVariable,
                      kSocketsVariable},
    LauncherVariables{"mpirun", RankTransport::Mpi, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                      "OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_RANK"},
    LauncherVariables{"mpiexec", RankTransport::Mpi, "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", "PMI_RANK"},
    LauncherVariables{"torchrun", RankTransport::Sockets, "RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR"},
    LauncherVariables{"srun", RankTransport::Mpi, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_TASKS_PER_NODE",
                      "SLURM_STEP_ID"}};

bool isSrun(const LauncherVariables& variables) { return variables.launcher == std::string_view("srun"); }

std::optional<int> numberOf(const Environment& environment, const char* name) {
  const std::optional<std::string> text = environment(name);
  int value = 0;
  if (!text) return std::nullopt;
  const auto [end, problem] = std::from_chars(text->data(), text->data() + text->size(), value);
  return problem == std::errc() && end == text->data() + text->size() ? std::optional(value) : std::nullopt;
}

/// "4(x2),1": the tasks of the first machine.
int firstNumberOf(const Environment& environment, const char* name, int otherwise) {
  const std::string text = environment(name).value_or("");
  std::from_chars(text.data(), text.data() + text.size(), otherwise);
  return otherwise;
}

/// "node[03-05,8],other": node03.
std::string firstHostOf(const std::string& nodes) {
  const std::size_t end = std::min(nodes.find_first_of("[,"), nodes.size());
  if (end == nodes.size() || nodes[end] == ',') return nodes.substr(0, end);
  return nodes.substr(0, end) + nodes.substr(end + 1, nodes.find_first_of(",-]", end) - end - 1);
}

/// Jobs that share a machine have different ports.
SocketMeeting meetingOfStep(const Environment& environment) {
  constexpr int kFirstPort = 20000;
  constexpr int kNumPorts = 20000;
  const bool isOneMachine = environment("SLURM_STEP_NUM_NODES").value_or("1") == "1";
  const std::string job = environment("SLURM_JOB_ID").value_or("");
  return {.host = isOneMachine ? "127.0.0.1" : firstHostOf(environment("SLURM_STEP_NODELIST").value_or("")),
          .firstPort = kFirstPort + firstNumberOf(environment, "SLURM_JOB_ID", 0) % kNumPorts,
          .token = fmt::format("slurm {}.{} {}", job, environment("SLURM_STEP_ID").value_or(""),
                               environment("SLURM_RESTART_COUNT").value_or(""))};
}

/// srun --mpi=pmi2 sets the variables of MPICH's launcher, too.
bool isOfSrun(const LauncherVariables& variables, const LaunchPlace& place, const Environment& environment) {
  return variables.needed == std::string_view("PMI_RANK") && environment("SLURM_STEP_ID") &&
         numberOf(environment, "SLURM_PROCID") == place.rank &&
         numberOf(environment, "SLURM_STEP_NUM_TASKS") == place.size;
}

/// torchrun's own store may hold MASTER_PORT. A restarted job is another one.
SocketMeeting meetingOf(const Environment& environment) {
  return {.host = environment("MASTER_ADDR").value_or("127.0.0.1"),
          .firstPort = numberOf(environment, "MASTER_PORT").value_or(29500) + 1,
          .token = fmt::format("{} {} {}", environment("TORCHELASTIC_RUN_ID").value_or(""),
                               environment("TORCHELASTIC_RESTART_COUNT").value_or(""),
                               environment("MASTER_PORT").value_or(""))};
}

std::optional<LaunchPlace> placeOf(const LauncherVariables& variables, const Environment& environment) {
  const std::optional<int> rank = numberOf(environment, variables.rank);
  const std::optional<int> size = numberOf(environment, variables.size);
  if (!rank || !size || !environment(variables.needed)) return std::nullopt;
  LaunchPlace place{.launcher = variables.launcher, .transport = variables.transport, .rank = *rank, .size = *size};
  if (isOfSrun(variables, place, environment)) return std::nullopt;
  place.localSize = firstNumberOf(environment, variables.localSize, *size);
  if (place.transport == RankTransport::InheritedSockets) place.sockets = *environment(variables.needed);
  if (place.transport == RankTransport::Sockets) place.meeting = meetingOf(environment);
  if (isSrun(variables) && !environment("PMIX_RANK")) {  // Open MPI cannot start
    place.transport = RankTransport::Sockets;
    place.meeting = meetingOfStep(environment);
  }
  return place;
}

std::string describe(const LauncherVariables& variables, const LaunchPlace& place) {
  return fmt::format("{}={} and {}={}", variables.rank, place.rank, variables.size, place.size);
}

Result<void> checkSame(const LauncherVariables& first, const LaunchPlace& place, const LauncherVariables& other,
                       const LaunchPlace& otherPlace) {
  const bool isSame = place.rank == otherPlace.rank && place.size == otherPlace.size;
  if (isSame || first.launcher == std::string_view("fuseline") || isSrun(other)) return {};
  return Error{fmt::format("Two launchers contradict each other: {}, but {}. Unset the variables of one launcher.",
                           describe(first, place), describe(other, otherPlace)),
               ErrorKind::Usage};
}

}  // namespace

Result<std::optional<LaunchPlace>> launchPlace(const Environment& environment) {
  std::optional<LaunchPlace> place;
  const LauncherVariables* first = nullptr;
  for (const LauncherVariables& variables : kLaunchers) {
    const std::optional<LaunchPlace> next = placeOf(variables, environment);
    if (!next) continue;
    if (place)
      if (Result<void> same = checkSame(*first, *place, variables, *next); !same) return same.error();
    if (place) continue;
    place = next;
    first = &variables;
  }
  if (!place) return place;
  if (place->rank < 0 || place->rank >= place->size)
    return Error{fmt::format("{}: expected a rank from 0 to {}.", describe(*first, *place), place->size - 1),
                 ErrorKind::Usage};
  return place->size == 1 ? std::optional<LaunchPlace>() : place;
}

}  // namespace fuseline
