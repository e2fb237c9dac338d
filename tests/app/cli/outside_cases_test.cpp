// Files in which outsiders found faults, each with the result that TransformerEngine, the model or the file calls for.
// SPDX-License-Identifier: Apache-2.0
#include "tests/app/cli/program.h"
#include "tests/support/temporary_folder.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace fuseline::testing {
namespace {

namespace fs = std::filesystem;

fs::path casesIn(const char* folder) { return fs::path(FUSELINE_SOURCE_DIR) / "tests/cases" / folder; }

struct OutsideCase {
  std::string file;
  std::string call;  // {}: the file
  int exitCode = 0;
  std::vector<const char*> has;    // in what it prints
  std::vector<const char*> lacks;  // what it printed before
};

void expectResult(const OutsideCase& each, const fs::path& folder) {
  const ProgramResult result = fuseline(fmt::format(fmt::runtime(each.call), each.file), {}, folder);
  const std::string text = result.out + result.err;
  SCOPED_TRACE(each.file + ": " + each.call + "\n" + text.substr(0, 4000));
  EXPECT_EQ(result.exitCode, each.exitCode);
  for (const char* part : each.has) EXPECT_TRUE(has(text, part)) << part;
  for (const char* part : each.lacks) EXPECT_FALSE(has(text, part)) << part;
}

/// Every file of the folder has a case.
void expectResults(const char* folder, const std::vector<OutsideCase>& cases) {
  std::set<std::string> covered;
  for (const OutsideCase& each : cases) {
    covered.insert(each.file);
    expectResult(each, casesIn(folder));
  }
  for (const auto& file : fs::directory_iterator(casesIn(folder)))
    EXPECT_TRUE(covered.contains(file.path().filename())) << file.path();
}

constexpr const char* kPlan = "fuse {} --rules te --device sm_100 --format plan";
constexpr const char* kModule = "export {} --to te";
constexpr const char* kIsNotInPlace = "in_place is switched off, because TransformerEngine would overwrite";

TEST(OutsideCases, OfTransformerEngineHaveItsPlansAndModules) {
  expectResults(
      "te",
      {{"a_mixed_dtypes.fuseline", kPlan, 0, {"[fc.linear + fc.bias]  ForwardLinearBiasActivation"}},
       {"b_make_extra_without_gradient.fuseline",
        kPlan,
        0,
        {"[save + fc]  BackwardLinearAdd"},
        {"BackwardLinearScale"}},
       {"b_make_extra_without_gradient.fuseline", kModule, 0, {kIsNotInPlace}},
       {"c2_fp8_eight_rows_inference.fuseline", "fuse {} --pass forward", 0, {}, {"stays in bf16"}},
       {"c_activation_bias_shape.fuseline", kModule, 0, {"TransformerEngine quantizes this layer too, or raises."}},
       {"c_block_shape.fuseline", kPlan, 0, {}, {"stays in bf16"}},
       {"d_grouped_mlp_mxfp8_hybrid.fuseline", kPlan, 0, {"fc1 (GroupedLinear)"}, {"GroupedMLP"}},
       {"e1_grouped_linear_one_group.fuseline", kModule, 0, {"num_groups=1,"}},
       {"e2_export_crashes.fuseline", kModule, 0, {"class "}},
       {"e_grouped_mlp_scaled_tanh_srelu.fuseline", kPlan, 0, {"[fc1 + act + fc2]  GroupedMLP_CuTeGEMMUnary"}},
       {"e_grouped_mlp_scaled_tanh_srelu.fuseline", kModule, 0, {"NVTE_CUTEDSL_FUSED_GROUPED_MLP=1"}},
       {"g1_in_place_gradient_alias.fuseline", kModule, 0, {kIsNotInPlace}, {"in_place=True"}},
       {"g1_in_place_gradient_alias.fuseline", "explain {}", 0, {}, {"Set save.in_place to true"}},
       {"g3_mlp_residual_in_place.fuseline", kModule, 0, {kIsNotInPlace}, {"in_place=True"}},
       {"g_grouped_mlp_inference.fuseline", std::string(kPlan) + " --pass forward", 0, {"GroupedMLP_CuTeGEMMGLU"}},
       {"j_grouped_mlp_qgeglu_limit.fuseline", kPlan, 0, {"[fc1 + act + fc2]  GroupedMLP_CuTeGEMMGLU"}},
       {"r1_linear_linear_mxfp8.fuseline", kModule, 0, {"up.linear begins a new te.ops.Sequential"}},
       {"r2_nvfp4_rht_f32.fuseline", kModule, 1, {"random Hadamard transform needs bf16", "disable_rht=true"}},
       {"r2_nvfp4_rht_f32.fuseline", "validate {}", 0, {"random Hadamard transform needs bf16", "recipe-te"}},
       {"c_activation_bias_shape.fuseline", "fuse {} --rules te", 0, {"[fc.bias + act]  BackwardActivationBias"}},
       {"s_scale_add_other_dtype.fuseline", kPlan, 0, {"add (AddExtraInput)"}, {"ForwardLinearScaleAdd"}},
       {"s_scale_add_other_dtype.fuseline", kModule, 0, {kIsNotInPlace}, {"in_place=True"}}});
}

TEST(OutsideCases, OfExportersOpen) {
  const std::vector<std::pair<const char*, std::string>> models = {
      {"02_attention_block_torchscript.onnx",
       "MakeExtraOutput Linear Linear Linear DotProductAttention Linear AddExtraInput"},
      {"02_no_value_info.onnx", "Linear External Linear"},
      {"03_gated_chunk_torchscript.onnx", "MakeExtraOutput LayerNorm Linear SwiGLU Linear AddExtraInput"},
      {"03_gated_chunk_torchscript_inferred.onnx", "MakeExtraOutput LayerNorm Linear SwiGLU Linear AddExtraInput"},
      {"04_mlp_layernorm_opset11.onnx", "MakeExtraOutput LayerNorm Linear ReLU Linear AddExtraInput LayerNorm"},
      {"06_rms_gamma_expands.onnx", "RMSNorm External Linear"},
      {"06_rms_scalar_gamma.onnx", "RMSNorm ConstantScale Linear"},
      {"07_com_microsoft_biasgelu.onnx", "Linear GELU Linear"},
      {"08_local_functions.onnx", "Linear Linear"},
      {"10_no_outputs.onnx", "External Formula"},
      {"14_attention_block_dynamo.onnx",
       "MakeExtraOutput Linear Linear Linear DotProductAttention Linear AddExtraInput"},
      {"16_bias_1x1xH.onnx", "Linear Linear"},
      {"16_clip_relu6.onnx", "Linear Formula Linear"},
      {"16_div_by_constant.onnx", "Linear ConstantScale Linear"},
      {"16_sub_of_two.onnx", "Linear Linear Formula Linear"},
      {"17_reshape_with_zero.onnx", "Reshape Reshape Linear"},
      {"17_transposes_that_cancel.onnx", "Linear"},
      {"18_qdq_linear.onnx", "Linear"},
      {"23_gelu_erf_fp16.onnx", "Linear GELU Linear"},
      {"23_gelu_tanh_bf16.onnx", "Linear GELU Linear"}};
  std::set<std::string> covered;
  for (const auto& [file, expected] : models) {
    covered.insert(file);
    const ProgramResult imported = fuseline("import " + std::string(file), {}, casesIn("field"));
    ASSERT_EQ(imported.exitCode, 0) << file << imported.err;
    const Json pipeline = imported.json()["pipeline"];
    std::string ops;
    for (const Json& op : pipeline["ops"]) ops += (ops.empty() ? "" : " ") + op["op"].get<std::string>();
    EXPECT_EQ(ops, expected) << file;
  }
  for (const auto& file : fs::directory_iterator(casesIn("field")))
    EXPECT_TRUE(file.path().extension() != ".onnx" || covered.contains(file.path().filename())) << file.path();
}

// A model with attention leaves again: as a module, and as the nodes that it had.
TEST(OutsideCases, OfExportersLeaveAgain) {
  const TemporaryFolder folder;
  const std::string model = quoted(casesIn("field") / "14_attention_block_dynamo.onnx");
  ASSERT_EQ(fuseline("import " + model + " -o model.fuseline", {}, folder.path()).exitCode, 0);
  expectResult({"model.fuseline", "export {} --to te", 0, {"te.DotProductAttention("}}, folder.path());
  expectResult({"model.fuseline", "export {} --to onnx -o again.onnx", 0, {"Wrote again.onnx."}}, folder.path());
}

TEST(OutsideCases, OfReportsAreDecidedAsTheFieldDoes) {
  const fs::path folder = casesIn("field");
  for (const OutsideCase& each : std::vector<OutsideCase>{
           {"01_float8block_320x64.fuseline", "fuse {} --recipe float8block", 0, {"recipe-small"}, {"stays in bf16"}},
           {"12_llama_80_layers.fuseline", "fuse {} --recipe mxfp8", 0, {"The same holds in 79 more instances"}},
           {"12_llama_80_layers.fuseline", "export {} --to svg", 0, {"<svg"}},
           {"13_norm_before_row_parallel.fuseline",
            "fuse {} --ranks 2",
            1,
            {"Insert a column-parallel layer after it."}},
           {"13_norm_before_row_parallel.fuseline", kModule, 0, {"l is row-parallel: each rank reads its share"}},
           {"15_fp8_inference_8_rows.fuseline",
            "fuse {} --pass forward --set M=8 --recipe delayed",
            0,
            {"ForwardLinearBiasActivation"},
            {"stays in bf16"}},
           {"19_small_layer.fuseline", "fuse {} --recipe delayed", 0, {"saves 3.3 us, costs 9 us", "recipe-small"}},
           {"21_add_reshape_norm.fuseline", "suggest {}", 0, {"1. Move rs before add"}},
           {"22_norm_read_by_two_linears.fuseline",
            "fuse {} --recipe mxfp8 --stage plan",
            0,
            {"k : q.input@rowwise, k.weight@rowwise"}}})
    expectResult(each, folder);
  const std::string text = fuseline("fuse 12_llama_80_layers.fuseline --recipe mxfp8", {}, folder).err;
  EXPECT_LE(std::ranges::count(text, '\n'), 10) << text;
}

// 65,536 ops from 3 KB, in which fusions of both passes overlap from the first to the last.
TEST(OutsideCases, OfHostileHandsEndSoonWithASentence) {
  expectResults("attack",
                {{"base.fuserun", "export {} --to csv", 0, {"unfused,forward,norm"}},
                 {"bomb16.fuseline", "validate {} --pass forward", 0, {"0 errors"}},
                 {"gate_rstd.fuseline", "run {} --iterations 1 --warmup 0 --quiet --fail-if 'error>tolerance'", 0},
                 {"github_injection.fuseline",
                  "fuse {} --annotate github --expect /dev/null",
                  1,
                  {"\\u000a::error file=pwn::injected"},
                  {"\n::error file=pwn"}},
                 {"nonutf8_message.fuserun", "compare base.fuserun {}", 1, {"/samplesNs: expected a list of numbers"}},
                 {"te_long_id.fuseline", kModule, 0, {"class "}},
                 {"te_long_id_external.fuseline", kModule, 0, {"te.X()"}},
                 {"te_long_id_formula.fuseline", kModule, 0, {"class "}},
                 {"te_long_id_linear.fuseline", kModule, 0, {"class "}},
                 {"te_module_newline.fuseline", kModule, 1, {"expected one Python expression on one line"}, {"class "}},
                 {"te_module_syntax.fuseline", kModule, 1, {"expected one Python expression on one line"}, {"class "}},
                 {"te_name__modules.fuseline", kModule, 0, {"class "}, {"self._modules ="}},
                 {"te_name_named_parameters.fuseline", kModule, 0, {"class "}, {"self.named_parameters ="}},
                 {"te_name_parameter.fuseline", kModule, 0, {"class "}, {"self.named_parameters ="}},
                 {"te_nested_attention.fuseline", kModule, 0, {"te.DotProductAttention(4, 8)"}},
                 {"terminal_escape.fuseline", "validate {}", 1, {"the dtype is \"f\\u001b[2J32\""}, {"\x1b"}}});
}

}  // namespace
}  // namespace fuseline::testing
