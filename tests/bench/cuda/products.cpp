// Compares the algorithm chosen for a GEMM with the fastest of an exhaustive search: GEMMs of linear layers at sizes of
// real models, in every format, on random data, in one run.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/stats.h"
#include "core/support/json.h"
#include "kernels/cuda/gemm/cublaslt_choice.h"
#include "kernels/cuda/gemm/gemm_timer.h"
#include "kernels/cuda/support/check.h"
#include "tests/bench/cuda/algorithm_search.h"
#include "tests/bench/cuda/exhaustive_contest.h"
#include "tests/bench/cuda/product_cases.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <iterator>
#include <string>

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <CLI/CLI.hpp>

namespace fuseline::cuda {
namespace {

/// Ratio of the best algorithm's time to that of the chosen one.
constexpr double kWantedShare = 0.97;
constexpr int kRounds = 31;
constexpr int kOffered = 256;
/// Exit status of test programs that cannot run.
constexpr int kSkipped = 77;
constexpr int kUsage = 2;

struct Options {
  std::string only;
  double seconds = 10.0;
  std::uint64_t maxChecks = 200'000;
  bool asJson = false;
  bool isListed = false;
};

std::vector<ProductCase> casesOf(const std::string& only) {
  std::vector<ProductCase> cases = productCases();
  std::erase_if(cases, [&](const ProductCase& each) { return each.name.find(only) == std::string::npos; });
  return cases;
}

struct Row {
  std::string name;
  GemmProblem problem;
  std::string reason = {};  // why there is nothing to compare
  SearchResult search = {};
  std::size_t numCandidates = 0;
  std::size_t numTimed = 0;
  SampleStats first, chosen, best;
  RatioStats firstShare, chosenShare;  // the best's time over theirs
};

/// The first of the field are cuBLASLt's top heuristic and the backend's choice.
std::vector<CublasLtCandidate> fieldOf(const CublasLtProduct& product, const CublasLtCandidate& chosen,
                                       const SearchResult& search) {
  std::vector<CublasLtCandidate> field = {product.candidates(1).front(), chosen};
  std::ranges::copy(product.candidates(kOffered), std::back_inserter(field));
  std::ranges::copy(search.accepted, std::back_inserter(field));
  return field;
}

void compare(CublasLtProduct& product, const std::vector<CublasLtCandidate>& field, const Options& options, Row& row) {
  const auto launch = [&](std::size_t candidate, const GemmPointers& pointers, std::byte* workspace) {
    product.multiply(field[candidate], pointers, workspace, product.session().stream());
  };
  const auto timer =
      makeGemmTimer(product.problem(), kMaxWorkspaceBytes + kEpilogueBytes, launch, product.session().stream());
  const auto budget =
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(options.seconds));
  const Winner winner = fastestOf(field.size(), *timer, budget);
  row.numCandidates = field.size();
  row.numTimed = winner.numTimed;
  const std::vector<std::vector<double>> samplesNs =
      timeInTurn(std::array<std::size_t, 3>{0, 1, winner.candidate}, *timer, kRounds);
  row.first = summarize(samplesNs[0]);
  row.chosen = summarize(samplesNs[1]);
  row.best = summarize(samplesNs[2]);
  row.firstShare = compareRounds(samplesNs[2], samplesNs[0]);
  row.chosenShare = compareRounds(samplesNs[2], samplesNs[1]);
  if (row.best.count == 0) row.reason = "an algorithm failed in every round";
}

Row rowOf(const ProductCase& what, const CublasLtSession& session, const SearchFunctions& functions,
          const Options& options) {
  Row row{.name = what.name, .problem = what.problem};
  CublasLtProduct product(session, what.problem);
  CublasLtChooser chooser({.isTimed = true}, {});
  const std::vector<CublasLtCandidate> chosen = chooser.choose(product);
  if (chosen.empty()) {
    row.reason = "the library has no algorithm for it";
    return row;
  }
  row.search = searchAlgorithms(product, functions, options.maxChecks);
  compare(product, fieldOf(product, chosen.front(), row.search), options, row);
  return row;
}

/// A failure, such as insufficient memory, does not end the other cases.
Row measured(const ProductCase& what, const CublasLtSession& session, const SearchFunctions& functions,
             const Options& options) try {
  return rowOf(what, session, functions, options);
} catch (const std::exception& failure) {
  return {.name = what.name, .problem = what.problem, .reason = failure.what()};
}

double microseconds(const SampleStats& stats) { return stats.median / 1e3; }

/// 0: it was not timed.
double teraflops(const GemmProblem& problem, const SampleStats& stats) {
  if (stats.count == 0) return 0.0;
  const double flops = 2.0 * static_cast<double>(problem.m) * static_cast<double>(problem.n);
  return flops * static_cast<double>(problem.k) / stats.median / 1e3;
}

void print(std::FILE* to, const Row& row) {
  if (!row.reason.empty()) {
    fmt::print(to, "{:<36} not measured: {}\n", row.name, row.reason);
  } else {
    fmt::print(to, "{:<36} {:>9.1f} {:>9.1f} {:>9.1f} {:>8.1f} {:>7.3f} {:>7.3f} [{:.3f}, {:.3f}]{} {:>6} of {}\n",
               row.name, microseconds(row.first), microseconds(row.chosen), microseconds(row.best),
               teraflops(row.problem, row.chosen), row.firstShare.median, row.chosenShare.median, row.chosenShare.low,
               row.chosenShare.high, row.chosenShare.median < kWantedShare ? " !" : "  ", row.numTimed,
               row.numCandidates);
  }
  std::fflush(to);
}

Json toJson(const RatioStats& ratio) { return {{"median", ratio.median}, {"low", ratio.low}, {"high", ratio.high}}; }

Json toJson(const Row& row) {
  return {{"product", row.name},
          {"m", row.problem.m},
          {"n", row.problem.n},
          {"k", row.problem.k},
          {"reason", row.reason},
          {"configurations", row.search.numConfigurations},
          {"checked", row.search.numChecked},
          {"accepted", row.search.accepted.size()},
          {"candidates", row.numCandidates},
          {"timed", row.numTimed},
          {"rounds", row.best.count},
          {"firstMedianNs", row.first.median},
          {"chosenMedianNs", row.chosen.median},
          {"bestMedianNs", row.best.median},
          {"chosenTflops", teraflops(row.problem, row.chosen)},
          {"bestTflops", teraflops(row.problem, row.best)},
          {"firstShare", toJson(row.firstShare)},
          {"chosenShare", toJson(row.chosenShare)}};
}

void printEnd(const std::vector<Row>& rows) {
  const auto isMeasured = [](const Row& row) { return row.reason.empty(); };
  const auto isPoor = [&](const Row& row) { return isMeasured(row) && row.chosenShare.median < kWantedShare; };
  fmt::print(
      "\n{} of {} products are below {} of the best. Microseconds are medians of {} rounds that interleave the "
      "library's\nfirst choice, the one chosen by timing, and the best of all that were timed; TFLOP/s are the chosen "
      "one's. Shares are the "
      "best's time over\ntheirs, within a round, the chosen one's with its 95 % interval.\n",
      std::ranges::count_if(rows, isPoor), std::ranges::count_if(rows, isMeasured), kWantedShare, kRounds);
}

std::string deviceName() {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, 0), "say what it is");
  return properties.name;
}

void run(const CublasLt& library, const SearchFunctions& functions, const Options& options) {
  const CublasLtSession session(library, nullptr);
  const std::string device = deviceName();
  if (!options.asJson)
    fmt::print("{}, cuBLASLt {}\n\n{:<36} {:>9} {:>9} {:>9} {:>8} {:>7} {:>7}  interval and candidates timed\n", device,
               library.version(), "product", "first us", "chosen us", "best us", "TFLOP/s", "first", "chosen");
  std::vector<Row> rows;
  for (const ProductCase& what : casesOf(options.only)) {
    rows.push_back(measured(what, session, functions, options));
    print(options.asJson ? stderr : stdout, rows.back());  // nothing is lost when the rest takes too long
  }
  if (!options.asJson) return printEnd(rows);
  Json list = Json::array();
  for (const Row& row : rows) list.push_back(toJson(row));
  fmt::print("{}\n", Json{{"device", device}, {"library", library.version()}, {"rows", list}}.dump(2));
}

/// Empty: there is a GPU.
std::string missingGpu() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) return cudaGetErrorString(error);
  return count > 0 ? "" : "no device";
}

int listProducts(const Options& options) {
  for (const ProductCase& each : casesOf(options.only)) fmt::print("{}\n", each.name);
  return 0;
}

int main(const Options& options) try {
  if (casesOf(options.only).empty()) {
    fmt::print(stderr, "--only {}: no product has that in its name; --list shows them all.\n", options.only);
    return kUsage;
  }
  if (options.isListed) return listProducts(options);
  if (const std::string reason = missingGpu(); !reason.empty()) {
    fmt::print(stderr, "There is no GPU to multiply on ({}): nothing was measured.\n", reason);
    return kSkipped;
  }
  const Result<CublasLt> library = loadCublasLt();
  const Result<SearchFunctions> functions = loadSearchFunctions();
  if (library && functions) {
    run(*library, *functions, options);
    return 0;
  }
  fmt::print(stderr, "{}\n", library ? functions.error().message : library.error().message);
  return 1;
} catch (const DeviceFault& fault) {
  fmt::print(stderr, "{}\n", fault.what());
  return 1;
}

}  // namespace
}  // namespace fuseline::cuda

int main(int argc, char** argv) {
  fuseline::cuda::Options options;
  CLI::App app("Compares the algorithms that matrix products get with the best of an exhaustive search");
  app.add_option("--only", options.only, "Products with this in their name, such as \"fp8 8B\"")->type_name("TEXT");
  app.add_option("--seconds", options.seconds, "To time the field of one product with")->capture_default_str();
  app.add_option("--checks", options.maxChecks, "Configurations of a product that are looked at")
      ->capture_default_str();
  app.add_flag("--list", options.isListed, "Shows the names of the products");
  app.add_flag("--json", options.asJson, "Machine-readable output");
  CLI11_PARSE(app, argc, argv);
  return fuseline::cuda::main(options);
}
