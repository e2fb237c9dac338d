// Reads the variables of every launcher in turn. The first complete set counts.
// SPDX-License-Identifier: Apache-2.0
#include "app/ranks/launch_place.h"

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
    LauncherVariables{"srun", RankTransport::Mpi, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS_PER_NODE",
                      "SLURM_STEP_ID"}};

std::optional<int> numberOf(const Environment& environment, const char* name) {
  const std::optional<std::string> text = environment(name);
  int value = 0;
  if (!text) return std::nullopt;
  const auto [end, problem] = std::from_chars(text->data(), text->data() + text->size(), value);
  return problem == std::errc() && end == text->data() + text->size() ? std::optional(value) : std::nullopt;
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
  place.localSize = numberOf(environment, variables.localSize).value_or(*size);
  if (place.transport == RankTransport::InheritedSockets) place.sockets = *environment(variables.needed);
  if (place.transport == RankTransport::Sockets) place.meeting = meetingOf(environment);
  return place;
}

std::string describe(const LauncherVariables& variables, const LaunchPlace& place) {
  return fmt::format("{}={} and {}={}", variables.rank, place.rank, variables.size, place.size);
}

Result<void> checkSame(const LauncherVariables& first, const LaunchPlace& place, const LauncherVariables& other,
                       const LaunchPlace& otherPlace) {
  const bool isSame = place.rank == otherPlace.rank && place.size == otherPlace.size;
  if (isSame || first.launcher == std::string_view("fuseline") || other.launcher == std::string_view("srun")) return {};
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
