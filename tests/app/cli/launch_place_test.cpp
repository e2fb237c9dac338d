// Which rank a process is, by the variables that launchers document, and what ranks say when they differ.
// SPDX-License-Identifier: Apache-2.0
#include "app/ranks/launch_place.h"
#include "app/ranks/rank_job.h"

#include <map>
#include <string>

#include <gtest/gtest.h>

namespace fuseline {
namespace {

Result<std::optional<LaunchPlace>> placeIn(const std::map<std::string, std::string>& variables) {
  return launchPlace([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::optional<std::string>() : found->second;
  });
}

std::string textOf(const Result<std::optional<LaunchPlace>>& place) {
  if (!place) return place.error().message;
  if (!*place) return "none";
  const LaunchPlace& found = **place;
  return found.launcher + " " + std::to_string(found.rank) + "/" + std::to_string(found.size) + ", here " +
         std::to_string(found.localSize);
}

TEST(LaunchPlace, IsReadFromEachLauncher) {
  EXPECT_EQ(textOf(placeIn({})), "none");
  EXPECT_EQ(textOf(placeIn({{"OMPI_COMM_WORLD_RANK", "1"},
                            {"OMPI_COMM_WORLD_SIZE", "4"},
                            {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                            {"OMPI_UNIVERSE_SIZE", "9"}})),
            "mpirun 1/4, here 2");
  EXPECT_EQ(textOf(placeIn({{"PMI_RANK", "0"}, {"PMI_SIZE", "3"}})), "mpiexec 0/3, here 3");
  EXPECT_EQ(textOf(placeIn({{"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_STEP_ID", "0"}})),
            "srun 1/2, here 2");
  EXPECT_EQ(textOf(placeIn({{"FUSELINE_RANK", "1"}, {"FUSELINE_RANKS", "2"}, {"FUSELINE_RANK_SOCKETS", "5"}})),
            "fuseline 1/2, here 2");
}

TEST(LaunchPlace, OfTorchrunMeetsBesideItsStore) {
  const auto place = placeIn({{"RANK", "3"},
                              {"WORLD_SIZE", "8"},
                              {"LOCAL_WORLD_SIZE", "4"},
                              {"MASTER_ADDR", "node1"},
                              {"MASTER_PORT", "29400"},
                              {"TORCHELASTIC_RUN_ID", "job"}});
  ASSERT_TRUE(place && *place);
  EXPECT_EQ(textOf(place), "torchrun 3/8, here 4");
  EXPECT_EQ((**place).meeting.host, "node1");
  EXPECT_EQ((**place).meeting.firstPort, 29401);
}

// Open MPI starts only with srun --mpi=pmix.
TEST(LaunchPlace, OfSrunMeetsBySocketsUnlessThereIsPmix) {
  std::map<std::string, std::string> variables = {{"SLURM_PROCID", "1"},
                                                  {"SLURM_STEP_NUM_TASKS", "9"},
                                                  {"SLURM_STEP_ID", "0"},
                                                  {"SLURM_STEP_TASKS_PER_NODE", "4(x2),1"},
                                                  {"SLURM_JOB_ID", "20007"},
                                                  {"SLURM_STEP_NUM_NODES", "3"},
                                                  {"SLURM_STEP_NODELIST", "rack[03-04,7],other"}};
  variables["PMI_RANK"] = "1";  // --mpi=pmi2 sets both
  variables["PMI_SIZE"] = "9";
  auto place = placeIn(variables);
  EXPECT_EQ(textOf(place), "srun 1/9, here 4");
  ASSERT_TRUE(place && *place);
  EXPECT_EQ((**place).transport, RankTransport::Sockets);
  EXPECT_EQ((**place).meeting.host, "rack03");
  EXPECT_EQ((**place).meeting.firstPort, 20007);
  variables["SLURM_STEP_NODELIST"] = "a,b";
  EXPECT_EQ((**placeIn(variables)).meeting.host, "a");
  variables["PMIX_RANK"] = "1";
  EXPECT_EQ((**placeIn(variables)).transport, RankTransport::Mpi);
}

// A shell that Slurm starts has SLURM_PROCID=0 and no other task.
TEST(LaunchPlace, IsNoneInAShellOfSlurmAndForASingleRank) {
  EXPECT_EQ(textOf(placeIn({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}})), "none");
  EXPECT_EQ(textOf(placeIn({{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"MASTER_ADDR", "x"}})), "none");
  EXPECT_EQ(textOf(placeIn({{"RANK", "0"}, {"WORLD_SIZE", "2"}})), "none");
  EXPECT_EQ(textOf(placeIn({{"OMPI_COMM_WORLD_RANK", "one"}, {"OMPI_COMM_WORLD_SIZE", "2"}})), "none");
}

TEST(LaunchPlace, RefusesLaunchersThatContradictEachOther) {
  const std::map<std::string, std::string> mpi = {{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}};
  std::map<std::string, std::string> both = mpi;
  both.insert({{"RANK", "0"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "x"}});
  EXPECT_EQ(textOf(placeIn(both)),
            "Two launchers contradict each other: OMPI_COMM_WORLD_RANK=1 and OMPI_COMM_WORLD_SIZE=2, but RANK=0 and "
            "WORLD_SIZE=4. Unset the variables of one launcher.");
  std::map<std::string, std::string> underSlurm = mpi;
  underSlurm.insert({{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_STEP_ID", "0"}});
  EXPECT_EQ(textOf(placeIn(underSlurm)), "mpirun 1/2, here 2");
  EXPECT_EQ(textOf(placeIn({{"PMI_RANK", "2"}, {"PMI_SIZE", "2"}})),
            "PMI_RANK=2 and PMI_SIZE=2: expected a rank from 0 to 1.");
}

TEST(JobFacts, ThatDifferAreNamedWithTheRankAndTheNextStep) {
  const std::vector<JobFact> first = {{"the version", "1", "Install one."}, {"the plan", "a\nb\nc\n", "Look."}};
  EXPECT_EQ(difference({first, first, first}), "");
  std::vector<JobFact> other = first;
  other[1].value = "a\nB\nc\n";
  EXPECT_EQ(difference({first, first, other}), "rank 2 of 3: the plan is B, but b on rank 0. Look.");
  EXPECT_EQ(difference({first, other, first, other}), "ranks 1, 3 of 4: the plan is B, but b on rank 0. Look.");
  other[1].value = "a\nb\n";
  EXPECT_EQ(difference({first, other}), "rank 1 of 2: the plan is nothing, but c on rank 0. Look.");
  other[0].value = "2";
  EXPECT_EQ(difference({first, other}), "rank 1 of 2: the version is 2, but 1 on rank 0. Install one.");
}

}  // namespace
}  // namespace fuseline
