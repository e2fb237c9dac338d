// Repeats the options of the call, with names of files that the other machine has.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/remote/on_option.h"

#include "app/cli/interrupt.h"
#include "app/cli/terminal.h"
#include "app/remote/remote_machine.h"
#include "core/export/any_document.h"
#include "core/support/atomic_file.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace fuseline::cli {

namespace {

namespace fs = std::filesystem;

/// A file here, and its name in the working folder there.
struct MovedFile {
  std::string here;
  std::string there;
};

struct MovedFiles {
  std::vector<MovedFile> read;
  std::vector<MovedFile> written;
};

/// The name of the file, as one line.
std::string plainName(const std::string& path) {
  std::string name = fs::path(path).filename().string();
  std::ranges::replace(name, '\n', '_');
  return name.empty() ? "file" : name;
}

bool isPipelineFile(const std::string& path) { return fs::path(path).extension() == ".fuseline"; }

/// A model becomes a pipeline here: what it consists of may be many files.
std::string nameThere(const std::string& option, const std::string& path) {
  const bool isModel = option == "FILE" && !isPipelineFile(path);
  return isModel ? plainName(fs::path(path).stem().string() + ".fuseline") : plainName(path);
}

bool isNamed(const CLI::Option& option, const std::string& name) { return option.check_name(name); }

/// The word for a value of an option: a file's name there, or the value.
std::string wordFor(const CLI::Option& option, const std::string& value, const VerbFiles& files, MovedFiles& moved) {
  for (const auto& [name, path] : files.read)
    if (path == value && isNamed(option, name)) {
      moved.read.push_back({path, fmt::format("in/{}/{}", moved.read.size(), nameThere(name, path))});
      return moved.read.back().there;
    }
  for (const auto& [name, path] : files.written)
    if (path == value && isNamed(option, name)) {
      moved.written.push_back({path, fmt::format("out/{}_{}", moved.written.size(), plainName(path))});
      return moved.written.back().there;
    }
  return value;
}

std::vector<std::string> argumentsOf(const CLI::App& verb, const VerbFiles& files, MovedFiles& moved) {
  std::vector<std::string> arguments = {verb.get_name()};
  std::vector<std::string> positional;
  for (const CLI::Option* option : verb.get_options()) {
    if (option->count() == 0 || isNamed(*option, "--on") || isNamed(*option, "--force")) continue;
    for (const std::string& value : option->results()) {
      const std::string word = wordFor(*option, value, files, moved);
      if (option->get_type_size_max() == 0)
        arguments.push_back(option->get_name());
      else if (option->get_name().starts_with("-"))
        arguments.push_back(option->get_name().starts_with("--") ? fmt::format("{}={}", option->get_name(), word)
                                                                 : option->get_name() + word);
      else
        positional.push_back(word);
    }
  }
  arguments.emplace_back("--");
  arguments.insert(arguments.end(), positional.begin(), positional.end());
  return arguments;
}

/// A folder whose files would be mixed with those of this run.
Result<void> checkFolders(const CallThere& call) {
  for (const auto& [option, path] : call.files.written) {
    std::error_code ignored;
    if (!path.empty() && !call.replaces && fs::is_directory(path, ignored) && !fs::is_empty(path, ignored))
      return Error{fmt::format("{} {}: the folder is not empty. Choose another one, or pass --force.", option, path),
                   ErrorKind::Usage};
  }
  return {};
}

std::vector<std::string> environmentOf(const CallThere& call, const Context& context) {
  std::vector<std::string> environment = {fmt::format("COLUMNS={}", outputWidth())};
  if (context.hasColour) environment.emplace_back("FUSELINE_COLOR=always");
  if (!call.isQuiet && isatty(STDERR_FILENO)) environment.emplace_back("FUSELINE_PROGRESS=lines");
  return environment;
}

/// Lines of the other machine's standard error, and how far the program there is.
class TheirMessages {
 public:
  TheirMessages(bool showsProgress, std::ostream& err) : m_bar(showsProgress), m_err(err) {}

  void copying(std::uintmax_t done, std::uintmax_t total) {
    m_bar.show("copying Fuseline there, MiB", static_cast<int>(done >> 20u), static_cast<int>(total >> 20u));
    if (done == total) m_bar.clear();
  }

  void take(std::string_view line) {
    if (!line.starts_with(kProgressMark)) {
      m_bar.clear();
      m_err << line << std::endl;
      return;
    }
    line.remove_prefix(kProgressMark.size());
    const std::string stage(nextField(line));
    const int done = numberOf(nextField(line));
    m_bar.show(stage, done, numberOf(line));
  }

  void clear() { m_bar.clear(); }

 private:
  static std::string_view nextField(std::string_view& line) {
    const std::string_view field = line.substr(0, line.find('\t'));
    line.remove_prefix(std::min(line.size(), field.size() + 1));
    return field;
  }

  static int numberOf(std::string_view text) {
    int number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
  }

  ProgressBar m_bar;
  std::ostream& m_err;
};

Result<void> send(remote::RemoteMachine& machine, const MovedFile& file, bool isPipeline) {
  if (!isPipeline || isPipelineFile(file.here)) return machine.sendFile(file.here, file.there);
  const Result<LoadedDocument> loaded = loadOrImportDocument(file.here);
  if (!loaded) return loaded.error();
  return machine.sendText(serialize(loaded->document), file.there);
}

/// Where a file of the other machine goes: under its own name or into a folder. Nothing: nobody asked for it.
std::optional<fs::path> placeOf(const std::string& name, const std::vector<MovedFile>& written) {
  for (const MovedFile& file : written) {
    if (name == file.there) return file.here;
    const std::string rest = name.starts_with(file.there + "/") ? name.substr(file.there.size() + 1) : std::string();
    if (!rest.empty() && rest.find('/') == std::string::npos && rest != "..") return fs::path(file.here) / rest;
  }
  return std::nullopt;
}

Result<void> receiveAll(remote::RemoteMachine& machine, const MovedFiles& moved, std::ostream& out) {
  while (true) {
    const Result<std::optional<remote::RemoteMachine::SentFile>> file = machine.nextFile();
    if (!file) return file.error();
    if (!*file) return {};
    const std::optional<fs::path> place = placeOf((*file)->name, moved.written);
    Result<void> received;
    if (place) {
      const Result<void> written = writeFileAtomically(*place, [&](std::ostream& to) {
        received = machine.receive(**file, to);
        if (!received) to.setstate(std::ios::failbit);
      });
      if (received && !written) return written.error();
    } else {
      std::ostringstream text;
      received = machine.receive(**file, text);
      if (received && (*file)->name == "out/stdout") out << text.str();
    }
    if (!received) return received.error();
  }
}

}  // namespace

void addOnOption(CLI::App& verb, OnOption& option, const std::string& help) {
  option.verb = &verb;
  verb.add_option("--on", option.host, help)->type_name("HOST");
}

Result<int> callThere(const OnOption& on, const CallThere& call, Context& context) {
  const InterruptWatch interrupt;  // before any other thread
  const Result<remote::SshHost> host = remote::parseSshHost(on.host);
  if (!host) return host.error();
  if (Result<void> folders = checkFolders(call); !folders) return folders.error();
  MovedFiles moved;
  const std::vector<std::string> arguments = argumentsOf(*on.verb, call.files, moved);
  TheirMessages messages(!call.isQuiet, context.err);
  Result<std::unique_ptr<remote::RemoteMachine>> machine = remote::RemoteMachine::open(
      {.host = *host, .environment = environmentOf(call, context), .arguments = arguments},
      {.copying = [&](std::uintmax_t done, std::uintmax_t total) { messages.copying(done, total); },
       .said = [&](const std::string& line) { messages.take(line); }},
      interrupt.token());
  if (!machine) return machine.error();
  for (const MovedFile& file : moved.read)
    if (const Result<void> sent = send(**machine, file, file.there == arguments.back()); !sent) return sent.error();
  const Result<int> exitCode = (*machine)->run();
  if (!exitCode) return exitCode.error();
  const Result<void> received = receiveAll(**machine, moved, context.out);
  (*machine)->ssh().finish();
  messages.clear();
  if (!received) return received.error();
  return *exitCode;
}

}  // namespace fuseline::cli
