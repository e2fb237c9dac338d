// `--on HOST`: with a stand-in for ssh that runs the command here, with stand-ins that fail, and with an sshd of the
// test's own on the loopback address.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/run_file.h"
#include "core/tensor/safetensors.h"
#include "core/worker/protocol.h"
#include "tests/app/cli/program.h"
#include "tests/support/temporary_folder.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace fuseline::testing {
namespace {

namespace fs = std::filesystem;

/// A folder with a program "ssh", and the home of the other machine. `body` is its shell script, in which command()
/// runs the command of the call.
class StandIn {
 public:
  explicit StandIn(const std::string& body) {
    fs::create_directories(m_folder / "bin");
    const fs::path program = m_folder / "bin/ssh";
    writeText(program, fmt::format("#!/bin/sh\necho \"$*\" >>{0}/calls\nwhile [ \"$1\" != -- ]; do shift; done\n"
                                   "shift\nhost=$1\nline=$2\ncommand() {{ cd {0}; HOME={1} XDG_CACHE_HOME={1} "
                                   "sh -c \"$line\"; }}\n{2}\n",
                                   m_folder.path().string(), home().string(), body));
    fs::permissions(program, fs::perms::owner_all);
  }

  /// The same folder for all tests: the program is copied once.
  static fs::path home() {
    static const TemporaryFolder folder;
    return folder.path();
  }

  ProgramResult fuseline(const std::string& arguments, const std::string& before = {}) const {
    // The program is the shell's last command: a prefix sets the search path of that alone.
    const std::string path = fmt::format("PATH={}/bin:$PATH", m_folder.path().string());
    const fs::path out = m_folder / "out";
    const fs::path err = m_folder / "err";
    const std::string line = fmt::format("cd {} && {} {} {} {} >{} 2>{} </dev/null", quoted(m_folder.path()), path,
                                         before, quoted(FUSELINE_PROGRAM), arguments, quoted(out), quoted(err));
    const int status = std::system(line.c_str());
    return {.exitCode = WIFEXITED(status) ? WEXITSTATUS(status) : -1, .out = readText(out), .err = readText(err)};
  }

  fs::path operator/(const std::string& name) const { return m_folder / name; }
  std::string calls() const { return readText(m_folder / "calls"); }

 private:
  TemporaryFolder m_folder;
};

std::string words(const char* text) { return fmt::format("echo '{}' >&2; exit 255", text); }

int numBundles() {
  int count = 0;
  for (const auto& entry : fs::directory_iterator(StandIn::home() / "fuseline/workers"))
    count += entry.path().filename().string().find('.') == std::string::npos;
  return count;
}

TEST(OnHost, SweepsThereAndWritesFilesHere) {
  const StandIn ssh("command");
  const std::string arguments = fmt::format(
      "sweep {} --on gpu-box --over ranks=1,2 --iterations 2 -o table.csv --records runs --quiet", samplePipeline());
  const ProgramResult sweep = ssh.fuseline(arguments);
  ASSERT_EQ(sweep.exitCode, 0) << sweep.err;
  EXPECT_TRUE(sweep.out.find("ranks") != std::string::npos) << sweep.out;
  EXPECT_EQ(std::distance(fs::directory_iterator(ssh / "runs"), {}), 2);
  const std::string table = readText(ssh / "table.csv");
  EXPECT_EQ(std::ranges::count(table, '\n'), 3) << table;
  const Result<RunRecord> run = loadRunRecord(ssh / "runs/sample_ranks=2.fuserun");
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_EQ(run->settings.ranks, 2);

  const ProgramResult again = ssh.fuseline(arguments);
  EXPECT_EQ(again.exitCode, 2) << again.err;  // nothing is measured for files that cannot be written
}

TEST(OnHost, RunsThereAndWritesFilesHere) {
  const StandIn ssh("command");
  const std::string arguments = fmt::format(
      "run {} --on me@gpu-box:2222 --iterations 2 -o run.fuserun --dump all.safetensors --quiet", samplePipeline());
  const ProgramResult first = ssh.fuseline(arguments);
  ASSERT_EQ(first.exitCode, 0) << first.err;
  const Result<RunRecord> record = loadRunRecord(ssh / "run.fuserun");
  ASSERT_TRUE(record) << record.error().message;
  EXPECT_EQ(record->pipelineName, "sample");
  EXPECT_TRUE(readSafetensors((ssh / "all.safetensors").string()));
  EXPECT_NE(ssh.calls().find("-p 2222 -- me@gpu-box "), std::string::npos);
  const ProgramResult again = ssh.fuseline(arguments);
  EXPECT_EQ(again.exitCode, 2) << "the file exists";
  const ProgramResult listed = ssh.fuseline("devices --on gpu-box --json");
  EXPECT_EQ(listed.json()["devices"][0]["id"], "cpu") << listed.err;
  EXPECT_EQ(numBundles(), 1);
}

TEST(OnHost, WritesCapturedTensorsAndPassesExitCodesOn) {
  const StandIn ssh("command");
  const ProgramResult run = ssh.fuseline(fmt::format(
      "run {} --on gpu-box --iterations 1 --variants unfused --capture fc1 --captured tensors", samplePipeline()));
  EXPECT_EQ(run.exitCode, 0) << run.err;
  EXPECT_NE(run.out.find("fc1"), std::string::npos) << run.out;
  EXPECT_FALSE(fs::is_empty(ssh / "tensors"));
  const ProgramResult refused = ssh.fuseline(fmt::format("run {} --on gpu-box --device cuda:7", samplePipeline()));
  EXPECT_EQ(refused.exitCode, 3) << refused.err;
  EXPECT_NE(refused.err.find("cuda:7"), std::string::npos) << refused.err;
}

TEST(OnHost, RefusesNamesThatCouldBecomeOptionsOrCommands) {
  const StandIn ssh("command");
  for (const char* host : {"-oProxyCommand=touch$IFS./x", "me@-oProxyCommand=x", "a b", "$(id)", "host;id", "host:0",
                           "host:99999", "host:ssh", "@host", "me@", "`id`"}) {
    const ProgramResult result = ssh.fuseline(fmt::format("devices --on={}", quoted(host)));
    EXPECT_EQ(result.exitCode, 2) << host;
    EXPECT_NE(result.err.find("Expected a host"), std::string::npos) << result.err;
  }
  EXPECT_EQ(ssh.calls(), "");
}

TEST(OnHost, SaysWhyThereIsNoConnectionAndWhatToDo) {
  const std::pair<const char*, const char*> kCases[] = {
      {"ssh: Could not resolve hostname gpu-box: Name or service not known", "Check the spelling"},
      {"ssh: connect to host gpu-box port 22: Connection refused", "Start its ssh service"},
      {"me@gpu-box: Permission denied (publickey,password).", "ssh-copy-id"},
      {"Host key verification failed.", "confirm the key"},
      {"ssh: connect to host gpu-box port 22: Connection timed out", "Check that the machine is on"},
      {"something new", "Try ssh gpu-box in a terminal"}};
  for (const auto& [said, expected] : kCases) {
    const ProgramResult result = StandIn(words(said)).fuseline("devices --on gpu-box");
    EXPECT_EQ(result.exitCode, 4);
    EXPECT_NE(result.err.find(expected), std::string::npos) << result.err;
    EXPECT_NE(result.err.find(said), std::string::npos) << result.err;
    EXPECT_EQ(result.err.find("ssh: ssh:"), std::string::npos) << result.err;
  }
}

TEST(OnHost, SaysWhyTheProgramCannotBeThere) {
  const std::pair<const char*, const char*> kCases[] = {
      {"echo fuseline-remote machine no Linux sparc64; cat >/dev/null", "found Linux on sparc64"},
      {"echo fuseline-remote machine no Linux $(uname -m); read go; echo 'head: No space left on device' >&2; "
       "echo fuseline-remote failed; exit 9",
       "disk is full"},
      {"echo fuseline-remote machine no Linux $(uname -m); read go; echo \"fuseline-remote unfit version "
       "\\`GLIBC_2.99' not found\"; exit 9",
       "(GLIBC_2.99)"}};
  for (const auto& [body, expected] : kCases) {
    const ProgramResult result = StandIn(body).fuseline("devices --on gpu-box");
    EXPECT_EQ(result.exitCode, 4);
    EXPECT_NE(result.err.find(expected), std::string::npos) << result.err;
  }
}

TEST(OnHost, KeepsFilesWhereTheConnectionIsLost) {
  ASSERT_EQ(StandIn("command").fuseline("devices --on gpu-box").exitCode, 0);  // the program is there
  const StandIn ssh("command | head -n 2; echo 'client_loop: send disconnect: Broken pipe' >&2; exit 255");
  writeText(ssh / "old.fuserun", "old");
  const ProgramResult result =
      ssh.fuseline(fmt::format("run {} --on gpu-box --iterations 2 -o old.fuserun --force", samplePipeline()));
  EXPECT_EQ(result.exitCode, 4);
  EXPECT_NE(result.err.find("connection was lost"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("Broken pipe"), std::string::npos) << result.err;
  EXPECT_EQ(readText(ssh / "old.fuserun"), "old");
}

TEST(OnHost, AnInterruptStopsTheRunThereAndKeepsItsRounds) {
  const StandIn ssh("command");
  ASSERT_EQ(ssh.fuseline("devices --on gpu-box").exitCode, 0);
  const ProgramResult result =
      ssh.fuseline(fmt::format("run {} --set M=4096 --pass forward --on gpu-box --iterations 1000000 -o run.fuserun",
                               samplePipeline()),
                   "timeout --foreground -s INT 1.6");
  EXPECT_NE(result.err.find("cancelled"), std::string::npos) << result.err;
  if (result.err.find("before its first round") != std::string::npos) return;  // on a machine that is very busy
  const Result<RunRecord> record = loadRunRecord(ssh / "run.fuserun");
  ASSERT_TRUE(record) << record.error().message;
  EXPECT_TRUE(record->isPartial);
}

TEST(OnHost, TheWorkerTakesTensorsThereAndBringsCapturedOnesBack) {
  const StandIn ssh("command");
  RunRequest request{.id = 3,
                     .pipelineText = readText(goldenPath("sample.fuseline")),
                     .pipelineName = "sample",
                     .variants = {"unfused"},
                     .purpose = RunPurpose::Capture};
  request.capture = {.tensors = {"fc1"}, .file = (ssh / "here.safetensors").string(), .limitBytes = 1 << 20};
  writeText(ssh / "requests", encode(WorkerRequest(request)) + "\n");
  // The input stays open until there is an answer: its end would cancel the run.
  const std::string line = fmt::format(
      "cd {0} && (cat requests; n=0; until grep -q '\"captured\"' events || [ $n -gt 100 ]; do sleep 0.1; n=$((n+1)); "
      "done) | PATH={0}/bin:$PATH {1} worker --on gpu-box >events 2>err",
      ssh.operator/("").string(), quoted(FUSELINE_PROGRAM));
  EXPECT_EQ(std::system(line.c_str()), 0) << readText(ssh / "err");
  const std::string events = readText(ssh / "events");
  EXPECT_NE(events.find(R"("type":"captured")"), std::string::npos) << events.substr(0, 2000);
  EXPECT_EQ(events.find(R"("type":"file")"), std::string::npos);
  EXPECT_TRUE(readSafetensors(request.capture.file));
}

/// As the user who runs the tests, on a high port, with keys and a configuration of its own.
class LoopbackSshd {
 public:
  static bool isInstalled() { return fs::exists(program()); }

  LoopbackSshd() {
    const std::string folder = m_folder.path().string();
    fs::create_directories(m_folder / "bin");
    run(
        fmt::format("ssh-keygen -q -t ed25519 -N '' -f {0}/host && ssh-keygen -q -t ed25519 -N '' -f {0}/user && "
                    "cp {0}/user.pub {0}/authorized",
                    folder));
    writeText(
        m_folder / "sshd_config",
        fmt::format("ListenAddress 127.0.0.1\nPort {0}\nHostKey {1}/host\nAuthorizedKeysFile {1}/authorized\n"
                    "StrictModes no\nUsePAM no\nPidFile none\nPasswordAuthentication no\nSetEnv XDG_CACHE_HOME={2}\n",
                    kPort, folder, StandIn::home().string()));
    writeText(m_folder / "ssh_config",
              fmt::format("Host loopback\n  HostName 127.0.0.1\n  Port {0}\n  IdentityFile {1}/user\n"
                          "  IdentitiesOnly yes\n  UserKnownHostsFile /dev/null\n  StrictHostKeyChecking no\n",
                          kPort, folder));
    writeText(m_folder / "bin/ssh", fmt::format("#!/bin/sh\nexec /usr/bin/ssh -F {}/ssh_config \"$@\"\n", folder));
    fs::permissions(m_folder / "bin/ssh", fs::perms::owner_all);
    std::error_code ignored;
    fs::create_directories("/run/sshd", ignored);  // as root sshd wants it
    m_process = fork();
    if (m_process == 0) {
      const std::string config = folder + "/sshd_config";
      const std::string log = folder + "/log";
      execl(program().c_str(), program().c_str(), "-D", "-f", config.c_str(), "-E", log.c_str(), nullptr);
      _exit(127);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  ~LoopbackSshd() {
    kill(m_process, SIGTERM);
    waitpid(m_process, nullptr, 0);
  }
  LoopbackSshd(const LoopbackSshd&) = delete;
  LoopbackSshd& operator=(const LoopbackSshd&) = delete;

  ProgramResult fuseline(const std::string& arguments) const {
    const std::string folder = m_folder.path().string();
    const std::string line = fmt::format("cd {0} && PATH={0}/bin:$PATH {1} {2} >out 2>err </dev/null", folder,
                                         quoted(FUSELINE_PROGRAM), arguments);
    const int status = std::system(line.c_str());
    return {.exitCode = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
            .out = readText(m_folder / "out"),
            .err = readText(m_folder / "err") + readText(m_folder / "log")};
  }
  fs::path operator/(const std::string& name) const { return m_folder / name; }

 private:
  static constexpr int kPort = 22822;
  static std::string program() {
    const char* given = std::getenv("FUSELINE_SSHD");
    return given ? given : "/usr/sbin/sshd";
  }
  static void run(const std::string& line) { EXPECT_EQ(std::system(line.c_str()), 0) << line; }

  TemporaryFolder m_folder;
  pid_t m_process = 0;
};

TEST(OnHost, RunsOverARealSshd) {
  if (!LoopbackSshd::isInstalled()) GTEST_SKIP() << "There is no /usr/sbin/sshd: sudo apt install openssh-server.";
  const LoopbackSshd sshd;
  const ProgramResult result =
      sshd.fuseline(fmt::format("run {} --on loopback --iterations 2 -o run.fuserun --quiet", samplePipeline()));
  ASSERT_EQ(result.exitCode, 0) << result.err;
  EXPECT_TRUE(loadRunRecord(sshd / "run.fuserun"));
}

}  // namespace
}  // namespace fuseline::testing
