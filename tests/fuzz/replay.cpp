// For builds without libFuzzer: reads every file of the corpus, and for some seconds damaged ones.
// SPDX-License-Identifier: Apache-2.0
//   fuzz_NAME [--seconds N] FILE|FOLDER...
// The damage is the same in every run; the current input is written next to the program before it is read, so that it
// is available after a crash.
#include "tests/fuzz/fuzz.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

std::string bytesOf(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<fs::path> filesIn(const fs::path& place) {
  if (!fs::is_directory(place)) return {place};
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(place))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

void read(const std::string& bytes) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
}

/// One change of a file, such as a fuzzer makes.
class Damage {
 public:
  explicit Damage(const std::vector<std::string>& corpus) : m_corpus(corpus) {}

  std::string next() {
    std::string bytes = m_corpus[upTo(m_corpus.size() - 1)];
    for (std::size_t changes = 1 + upTo(3); changes > 0; --changes) change(bytes);
    return bytes;
  }

 private:
  std::size_t upTo(std::size_t most) { return std::uniform_int_distribution<std::size_t>(0, most)(m_random); }

  void change(std::string& bytes) {
    const std::size_t at = upTo(bytes.size());
    const std::size_t length = std::min(bytes.size() - at, upTo(16));
    const std::string& other = m_corpus[upTo(m_corpus.size() - 1)];
    switch (upTo(4)) {
      case 0: return void(bytes.erase(at, length));
      case 1: return void(bytes.insert(at, 1 + upTo(3), static_cast<char>(upTo(255))));
      case 2: return bytes.resize(at);
      case 3: return void(bytes.replace(at, length, other, upTo(other.size()), 1 + upTo(64)));
      default:
        if (at < bytes.size()) bytes[at] = static_cast<char>(upTo(255));
    }
  }

  const std::vector<std::string>& m_corpus;
  std::mt19937_64 m_random{1};
};

void readDamaged(const std::vector<std::string>& corpus, std::chrono::seconds time, const std::string& kept) {
  Damage damage(corpus);
  const auto end = std::chrono::steady_clock::now() + time;
  int inputs = 0;
  for (; std::chrono::steady_clock::now() < end; ++inputs) {
    const std::string bytes = damage.next();
    std::ofstream(kept, std::ios::binary | std::ios::trunc) << bytes;
    read(bytes);
  }
  fs::remove(kept);
  std::printf("%d damaged inputs read\n", inputs);
}

}  // namespace

int main(int argc, char** argv) {
  std::chrono::seconds time{0};
  std::vector<std::string> corpus;
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "--seconds" && i + 1 < argc) {
      time = std::chrono::seconds(std::atoi(argv[++i]));
      continue;
    }
    for (const fs::path& file : filesIn(argv[i])) corpus.push_back(bytesOf(file));
  }
  if (corpus.empty()) {
    std::fprintf(stderr, "%s: expected files or folders to read.\n", argv[0]);
    return 2;
  }
  for (const std::string& bytes : corpus) read(bytes);
  std::printf("%zu files read\n", corpus.size());
  if (time.count() > 0) readDamaged(corpus, time, std::string(argv[0]) + ".input");
  return 0;
}
