// Joins a job, compares what the ranks are about to do, and decides who speaks.
// SPDX-License-Identifier: Apache-2.0
#include "app/ranks/rank_job.h"

#include "app/ranks/mpi_module.h"
#include "core/support/json.h"
#include "core/support/text.h"
#include "core/support/version.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <sstream>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

/// "5,6"
std::vector<int> descriptorsIn(const std::string& text) {
  std::vector<int> descriptors;
  std::istringstream numbers(text);
  for (std::string number; std::getline(numbers, number, ',');) descriptors.push_back(std::atoi(number.c_str()));
  return descriptors;
}

Result<std::shared_ptr<Exchange>> connect(const LaunchPlace& place, std::optional<Seconds> rankTimeout) {
  const Patience patience(rankTimeout);
  switch (place.transport) {
    case RankTransport::InheritedSockets:
      return makeSocketExchange(place.rank, place.size, descriptorsIn(place.sockets), patience);
    case RankTransport::Sockets: return meetBySockets(place.rank, place.size, place.meeting, patience);
    case RankTransport::Mpi: break;
  }
  return joinMpi(rankTimeout);
}

/// Facts of a rank, for the others.
struct Statement {
  std::optional<Error> problem;
  std::vector<JobFact> facts;
};

std::string toText(const Statement& statement) {
  Json facts = Json::array();
  for (const JobFact& fact : statement.facts) facts.push_back({fact.name, fact.value, fact.advice});
  Json json = {{"facts", facts}};
  if (statement.problem) json["problem"] = {statement.problem->message, static_cast<int>(statement.problem->kind)};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Statement statementIn(const std::string& text) {
  const Json json = Json::parse(text);
  Statement statement;
  if (json.contains("problem"))
    statement.problem =
        Error{json["problem"][0].get<std::string>(), static_cast<ErrorKind>(json["problem"][1].get<int>())};
  for (const Json& fact : json["facts"])
    statement.facts.push_back({fact[0].get<std::string>(), fact[1].get<std::string>(), fact[2].get<std::string>()});
  return statement;
}

/// The problem of the first rank that has one, with its number unless all have it.
std::optional<Error> problemIn(const std::vector<Statement>& statements) {
  const auto first = std::ranges::find_if(statements, [](const Statement& each) { return each.problem.has_value(); });
  if (first == statements.end()) return std::nullopt;
  const auto hasIt = [&](const Statement& each) {
    return each.problem && each.problem->message == first->problem->message;
  };
  if (std::ranges::all_of(statements, hasIt)) return first->problem;
  return Error{fmt::format("rank {} of {}: {}", first - statements.begin(), statements.size(), first->problem->message),
               first->problem->kind};
}

/// The first line in which two texts differ.
std::pair<std::string, std::string> firstDifference(const std::string& a, const std::string& b) {
  std::istringstream linesA(a);
  std::istringstream linesB(b);
  std::string lineA;
  std::string lineB;
  do {
    lineA.clear();
    lineB.clear();
    std::getline(linesA, lineA);
    std::getline(linesB, lineB);
  } while (lineA == lineB && (linesA || linesB));
  return {lineA.empty() ? "nothing" : lineA, lineB.empty() ? "nothing" : lineB};
}

/// The version of each rank: the first fact. Older programs that could not prepare state none.
std::vector<std::vector<JobFact>> versionsOf(const std::vector<Statement>& statements) {
  std::vector<std::vector<JobFact>> versions;
  for (const Statement& statement : statements)
    versions.emplace_back(statement.facts.begin(), statement.facts.begin() + (statement.facts.empty() ? 0 : 1));
  return versions;
}

}  // namespace

std::string difference(const std::vector<std::vector<JobFact>>& factsByRank) {
  const auto valueOf = [&](std::size_t rank, std::size_t fact) {
    return fact < factsByRank[rank].size() ? factsByRank[rank][fact].value : std::string();
  };
  for (std::size_t fact = 0; fact < factsByRank.front().size(); ++fact)
    for (std::size_t rank = 1; rank < factsByRank.size(); ++rank) {
      const JobFact& expected = factsByRank.front()[fact];
      const std::string found = valueOf(rank, fact);
      if (found == expected.value) continue;
      std::vector<std::size_t> alike = {rank};
      for (std::size_t other = rank + 1; other < factsByRank.size(); ++other)
        if (valueOf(other, fact) == found) alike.push_back(other);
      const auto [own, first] = firstDifference(found, expected.value);
      return fmt::format("rank{} {} of {}: {} is {}, but {} on rank 0. {}", alike.size() > 1 ? "s" : "",
                         fmt::join(alike, ", "), factsByRank.size(), expected.name, own, first, expected.advice);
    }
  return {};
}

RankJob::RankJob(std::unique_ptr<StoppedRanksWatch> watch, LaunchPlace place, std::shared_ptr<Exchange> exchange)
    : m_watch(std::move(watch)),
      m_place(std::move(place)),
      m_exchange(std::move(exchange)),
      m_communicator(makeExchangeCommunicator(m_exchange)) {}

Result<std::unique_ptr<RankJob>> RankJob::join(const LaunchPlace& place, std::optional<Seconds> rankTimeout) {
  // The supervisor of its own ranks sees them stop.
  std::unique_ptr<StoppedRanksWatch> watch;
  if (place.transport != RankTransport::InheritedSockets) watch = std::make_unique<StoppedRanksWatch>();
  Result<std::shared_ptr<Exchange>> exchange = connect(place, rankTimeout);
  if (!exchange) return exchange.error();
  if ((*exchange)->size() != place.size)
    return Error{fmt::format("{} started {} ranks, but MPI sees {}. The MPI module is built with Open MPI: use its "
                             "mpirun, or srun --mpi=pmix.",
                             place.launcher, place.size, (*exchange)->size()),
                 ErrorKind::NoDevice};
  return std::unique_ptr<RankJob>(new RankJob(std::move(watch), place, std::move(*exchange)));
}

Result<void> RankJob::agree(const Result<void>& prepared, const std::vector<JobFact>& facts) {
  Statement own{.facts = {{"the version of Fuseline", std::string(version()), "Install one version on all hosts."}}};
  own.facts.insert(own.facts.end(), facts.begin(), facts.end());
  if (!prepared) own.problem = prepared.error();
  std::vector<Statement> statements;
  try {
    for (const std::string& text : gatherTexts(*m_communicator, toText(own), "the comparison of the ranks"))
      statements.push_back(statementIn(text));
  } catch (const std::exception& error) {
    return Error{error.what(), ErrorKind::RunFailed};
  }
  m_isRefused = true;
  if (const std::string text = difference(versionsOf(statements)); !text.empty()) return Error{text};
  if (std::optional<Error> problem = problemIn(statements)) return *problem;
  std::vector<std::vector<JobFact>> factsByRank;
  for (Statement& statement : statements) factsByRank.push_back(std::move(statement.facts));
  if (const std::string text = difference(factsByRank); !text.empty()) return Error{text};
  m_isRefused = false;
  return {};
}

int RankJob::leave(const Result<int>& code, std::ostream& err) {
  if (code) return *code;
  const std::optional<PeerFault> fault = m_exchange->fault();
  // Launchers end all ranks when the first one fails, and rank 0 may still be writing what was measured.
  if (m_isCancelled && !fault && !speaks()) return 0;
  if (!fault && !m_isRefused && !m_isCancelled)
    m_exchange->abort(fmt::format("rank {} of {}: {}", rank(), size(), code.error().message));
  const bool isRank0Gone = fault && fault->rank == 0 && !fault->isReported;
  if (rank() == (isRank0Gone ? 1 : 0))
    err << "fuseline: " << (fault ? fault->sentence : code.error().message) << std::endl;
  else
    std::this_thread::sleep_for(std::chrono::milliseconds(500));  // launchers end all ranks when the first one fails
  return static_cast<int>(code.error().kind);
}

}  // namespace fuseline
