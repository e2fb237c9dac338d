// A call never overwrites its input, nor an older result unless it succeeds.
// SPDX-License-Identifier: Apache-2.0
#include "tests/app/cli/program.h"
#include "tests/support/temporary_folder.h"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace fuseline::testing {
namespace {

constexpr const char* kOnce = "run --device reference --iterations 1 --warmup 0 --quiet ";

/// A folder with a pipeline, a.fuseline, and a run of it, a.fuserun.
struct Files {
  Files() {
    writeText(folder / "a.fuseline", readText(goldenPath("sample.fuseline")));
    EXPECT_EQ(call(std::string(kOnce) + "a.fuseline -o a.fuserun --save s.safetensors").exitCode, 0);
    EXPECT_EQ(call("export a.fuseline --to onnx -o m.onnx").exitCode, 0);
    EXPECT_EQ(call("export a.fuseline --to te -o a.py").exitCode, 0);
  }
  ProgramResult call(const std::string& arguments) const { return fuseline(arguments, {}, folder.path()); }
  std::string text(const std::string& name) const { return readText(folder / name); }

  TemporaryFolder folder;
};

struct Case {
  std::string call;
  std::string kept;
};

TEST(OutputFiles, AreNoneThatTheCallReads) {
  const Files files;
  std::filesystem::create_symlink("a.fuseline", files.folder / "link.fuseline");
  for (const char* weights : {"td/s.safetensors", "hf/model.safetensors"}) {
    std::filesystem::create_directory((files.folder / weights).parent_path());
    std::filesystem::copy_file(files.folder / "s.safetensors", files.folder / weights);
  }
  writeText(files.folder / "hf/config.json", R"({"model_type": "llama"})");
  const std::string once = kOnce;
  const std::vector<Case> cases = {
      {"export a.fuseline --to dot -o a.fuseline --force", "a.fuseline"},
      {"export a.fuseline --to dot -o ./a.fuseline --force", "a.fuseline"},
      {"export a.fuseline --to dot -o link.fuseline --force", "a.fuseline"},
      {"export a.fuserun --to csv -o a.fuserun --force", "a.fuserun"},
      {"export a.fuseline --to onnx --tensors s.safetensors -o s.safetensors --force", "s.safetensors"},
      {"export a.fuseline --to te --measured a.fuserun -o a.fuserun --force", "a.fuserun"},
      {"sweep a.fuseline --device reference --over M=2,4 -o a.fuseline --force", "a.fuseline"},
      {"import m.onnx -o m.onnx --force", "m.onnx"},
      {"import m.onnx -o q.fuseline --weights m.onnx --force", "m.onnx"},
      {"import a.py -o a.py --force", "a.py"},
      {"validate --repair a.py -o a.py --force", "a.py"},
      {"suggest a.py --device reference --rules te --apply 1 -o a.py --force", "a.py"},
      {"compare a.fuserun a.fuserun --report a.fuserun --force", "a.fuserun"},
      {once + "a.fuseline --tensors s.safetensors --save s.safetensors --force", "s.safetensors"},
      {once + "a.fuseline --tensors td --save td/s.safetensors --force", "td/s.safetensors"},
      {once + "a.fuseline --tensors td --dump ./td/s.safetensors", "td/s.safetensors"},
      {once + "hf/config.json --tensors hf --save hf --original-names", "hf/model.safetensors"},
      {"import hf/config.json -o q.fuseline --weights hf/model.safetensors --force", "hf/model.safetensors"},
      {once + "a.fuseline --measured a.fuserun -o a.fuserun --force", "a.fuserun"}};
  for (const Case& each : cases) {
    const std::string before = files.text(each.kept);
    const ProgramResult result = files.call(each.call);
    EXPECT_EQ(result.exitCode, 2) << each.call << "\n" << result.err;
    EXPECT_TRUE(has(result.err, "expected two files")) << each.call << "\n" << result.err;
    EXPECT_TRUE(files.text(each.kept) == before) << each.call;
  }
}

/// A model of the ONNX file format, version 8, with the input and output x and an initializer w whose data are in
/// w.bin: fields 8 (graph of 7), 5 (initializers) with 14 (data_location) and 13 (external_data).
std::string modelWithData() {
  const auto field = [](int number, const std::string& bytes) {
    return std::string{static_cast<char>(number * 8 + 2), static_cast<char>(bytes.size())} + bytes;
  };
  const std::string external = field(13, field(1, "location") + field(2, "w.bin"));
  const std::string weight = std::string("\x10\x01", 2) + field(8, "w") + external + std::string("\x70\x01", 2);
  const std::string value = field(1, "x");
  return std::string("\x08\x08", 2) + field(7, field(5, weight) + field(11, value) + field(12, value));
}

TEST(OutputFiles, AreNoDataOfAModelThatIsRead) {
  const Files files;
  writeText(files.folder / "data.onnx", modelWithData());
  writeText(files.folder / "w.bin", "weights");
  for (const char* const call : {"import data.onnx --weights w.bin --force", "import data.onnx -o ./w.bin --force"}) {
    const ProgramResult result = files.call(call);
    EXPECT_EQ(result.exitCode, 2) << result.err;
    EXPECT_TRUE(has(result.err, "FILE's data")) << result.err;
    EXPECT_EQ(files.text("w.bin"), "weights");
  }
}

/// The owner of a pipeline file wants its edits in the file.
TEST(OutputFiles, APipelineIsEditedInPlaceWhenForced) {
  const Files files;
  const std::string suggest = "suggest a.fuseline --device reference --rules te --apply 1 -o a.fuseline";
  EXPECT_EQ(files.call(suggest).exitCode, 2) << "it exists";
  EXPECT_EQ(files.call(suggest + " --force").exitCode, 0);
}

TEST(OutputFiles, OneNameIsOneFileBeforeItIsThere) {
  const Files files;
  for (const char* other : {"./new", "sub/../new"}) {
    std::filesystem::create_directory(files.folder / "sub");
    const ProgramResult result = files.call(fmt::format("{} a.fuseline --save new --dump {}", kOnce, other));
    EXPECT_EQ(result.exitCode, 2) << other;
    EXPECT_FALSE(std::filesystem::exists(files.folder / "new")) << other;
    std::filesystem::remove(files.folder / "sub");
  }
  std::filesystem::create_symlink("new", files.folder / "dangling");
  EXPECT_EQ(files.call(std::string(kOnce) + "a.fuseline --save new --dump dangling").exitCode, 2);
}

TEST(OutputFiles, CapturedTensorsReplaceNothingUnasked) {
  const Files files;
  for (const char* target : {"folder", "one.npy", "all.safetensors"}) {
    const std::string call = fmt::format("{} a.fuseline --capture norm:y --captured {}", kOnce, target);
    ASSERT_EQ(files.call(call).exitCode, 0) << target;
    const ProgramResult again = files.call(call);
    EXPECT_EQ(again.exitCode, 2) << target;
    EXPECT_TRUE(has(again.err, "--force overwrites it")) << again.err;
    EXPECT_EQ(files.call(call + " --force").exitCode, 0) << target;
  }
}

/// Sends a signal before the first round of a pipeline that takes many seconds is over.
ProgramResult interrupted(const Files& files, const std::string& arguments, const std::string& signal) {
  const std::string command =
      fmt::format("cd {} && {{ {} {} & }} >out 2>err; sleep 1; kill -{} $!; wait $!; echo $? >code",
                  quoted(files.folder.path()), quoted(std::filesystem::path(FUSELINE_PROGRAM)), arguments, signal);
  EXPECT_EQ(std::system(command.c_str()), 0);
  return {.exitCode = std::stoi(files.text("code")), .out = files.text("out"), .err = files.text("err")};
}

TEST(Interrupt, BeforeTheFirstResultLeavesTheOlderOne) {
  const Files files;
  writeText(files.folder / "old", "older");
  const std::string large = " a.fuseline --device reference --set M=4096 --set H=2048 -o old --force ";
  const std::vector<std::string> calls = {"run --no-peaks --warmup 0 --iterations 5" + large,
                                          "sweep --warmup 0 --iterations 5 --over M=4096,8192" + large};
  for (const std::string& call : calls)
    for (const char* signal : {"HUP", "INT"}) {
      const ProgramResult result = interrupted(files, call, signal);
      EXPECT_EQ(result.exitCode, 4) << result.err;
      EXPECT_EQ(files.text("old"), "older") << call;
    }
}

TEST(Options, ASeedIsAnIntegerOf64Bits) {
  for (const char* seed : {"-1", "18446744073709551616", "10000000000000000000000", "1.5", "x"})
    for (const std::string& verb :
         {std::string("run --device reference --iterations 1"), std::string("export --to te")})
      EXPECT_EQ(fuseline(fmt::format("{} --seed={} {}", verb, seed, samplePipeline())).exitCode, 2) << verb << seed;
  EXPECT_EQ(fuseline(std::string(kOnce) + "--seed 18446744073709551615 " + samplePipeline()).exitCode, 0);
  const ProgramResult many = fuseline("run --iterations 99999999999999 " + samplePipeline());
  EXPECT_TRUE(has(many.err, "expected a number from 1 to 2147483647, or auto")) << many.err;
}

}  // namespace
}  // namespace fuseline::testing
