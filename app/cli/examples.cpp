// Examples of each verb, at the beginning of its help.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/context.h"

#include <algorithm>
#include <array>

namespace fuseline::cli {

namespace {

struct Example {
  std::string_view verb;
  std::string_view calls;  // without the program's name, one a line
};

constexpr std::array kExamples = {
    Example{"new", "new\nnew llama-mlp -o mlp.fuseline"},
    Example{"ops", "ops\nops RMSNorm"},
    Example{"rules", "rules\nrules ForwardLinearBiasAdd\nrules --in mlp.fuseline"},
    Example{"recipes", "recipes\nrecipes Float8CurrentScaling"},
    Example{"validate",
            "validate mlp.fuseline\nvalidate models/*.fuseline --annotate github\nvalidate mlp.fuseline --repair -o "
            "mended.fuseline"},
    Example{"infer", "infer mlp.fuseline\ninfer mlp.fuseline --set M=4096 --json"},
    Example{
        "fuse",
        "fuse mlp.fuseline\nfuse mlp.fuseline --format plan\nfuse mlp.fuseline --device sm_90 --recipe float8current\n"
        "fuse mlp.fuseline --expect PLAN.json"},
    Example{"edit",
            "edit mlp.fuseline --insert RMSNorm --before fc1 --in-place\n"
            "edit mlp.fuseline --replace act=SiLU --set-attribute fc1.bias=true -o changed.fuseline\n"
            "edit model.fuseline --fold-repeats -o folded.fuseline"},
    Example{"explain", "explain mlp.fuseline\nexplain mlp.fuseline act"},
    Example{"suggest", "suggest mlp.fuseline\nsuggest mlp.fuseline --apply 1 -o better.fuseline"},
    Example{"run",
            "run mlp.fuseline\nrun mlp.fuseline --recipe float8current --numerics -o after.fuserun\n"
            "run mlp.fuseline --recipe all\nrun mlp.fuseline --on gpu-box --device cuda:0 -o run.fuserun"},
    Example{
        "sweep",
        "sweep mlp.fuseline --over M=64,512,4096\nsweep mlp.fuseline --over M=128:16384:x2 --over recipe=none,mxfp8"},
    Example{"compare",
            "compare before.fuserun after.fuserun\n"
            "compare before.fuserun after.fuserun --fail-if \"median>+5%\""},
    Example{"export", "export mlp.fuseline --to te -o mlp.py\nexport after.fuserun --to html -o report.html"},
    Example{"import", "import mlp.py -o mlp.fuseline\nimport model.onnx -o model.fuseline --weights model.safetensors"},
    Example{"devices", "devices\ndevices --json\ndevices --on gpu-box"},
    Example{"guide", "guide\nguide shape-mismatch"},
    Example{"schema", "schema > fuseline-pipeline-1.json\nschema --of run"},
    Example{"worker", "worker\nworker --on gpu-box"},
};

}  // namespace

std::string examplesOf(const std::string& verb) {
  const auto found = std::ranges::find(kExamples, verb, &Example::verb);
  if (found == kExamples.end()) return {};
  std::string text = "Examples:\n  fuseline ";
  for (const char c : found->calls) {
    text += c;
    if (c == '\n') text += "  fuseline ";
  }
  return text;
}

}  // namespace fuseline::cli
