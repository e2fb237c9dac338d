// Which attentions cuDNN has.
// SPDX-License-Identifier: Apache-2.0
// Source: the support surface of NVIDIA's cudnn-frontend 1.23, and TransformerEngine's limits for layout thd.
#include "kernels/cuda/attention/attention_graph.h"

#include <algorithm>

#include <fmt/format.h>

namespace fuseline::cuda {

namespace {

constexpr std::int64_t kChannelMultiple = 8;  // rows of heads begin at multiples of 16 bytes

Verdict lacks(std::string_view what) { return Verdict::no(fmt::format("cuDNN attention is not used {}", what)); }

Verdict fitsRules(const AttentionProblem& problem) {
  const AttentionForm& form = problem.form;
  if (problem.dtype == DType::F32) return lacks("for float32; choose bf16 or f16");
  if (form.maskSlot >= 0) return lacks("with an arbitrary mask");
  if (form.bias != AttentionBias::None) return lacks("with a bias");
  if (form.hasSink()) return lacks("with a sink");
  if (form.softcap > 0.0) return lacks("with softcap");
  if (form.dropout > 0.0) return lacks("with dropout, because its mask would differ from the CPU's");
  return Verdict::yes();
}

/// Channels of one head. Wider ones need Hopper.
Verdict fitsChannels(const AttentionForm& form, ComputeCapability capability) {
  constexpr std::int64_t kMost = 128;
  constexpr std::int64_t kMostOfHopper = 256;
  const std::int64_t widest = std::max(form.qkChannels, form.vChannels);
  if (form.qkChannels % kChannelMultiple != 0 || form.vChannels % kChannelMultiple != 0)
    return lacks(fmt::format("for heads of {} channels, not a multiple of {}", widest, kChannelMultiple));
  const bool isHopper = capability.major == 9;
  if (widest > (isHopper ? kMostOfHopper : kMost) || (form.qkChannels != form.vChannels && widest > kMost))
    return lacks(fmt::format("for heads of {} channels", widest));
  return Verdict::yes();
}

/// It refuses gradients of one query and one key, and its rows that attend to no key are not 0.
Verdict fitsTokens(const AttentionProblem& problem) {
  constexpr std::int64_t kFewest = 2;
  const std::int64_t queries = problem.layouts.q.tokens;
  const std::int64_t keys = problem.layouts.k.tokens;
  if (std::min(queries, keys) < kFewest)
    return lacks(fmt::format("for {} queries and {} keys; it needs at least {} of each", queries, keys, kFewest));
  const bool isBanded = problem.form.left >= 0 || problem.form.isBottomRight;
  if (isBanded && problem.form.right >= 0 && queries > keys)
    return lacks(fmt::format("for {} queries and {} keys, where some rows would see no key", queries, keys));
  if (problem.form.left >= 0 && queries > keys) return lacks("with a window and more queries than keys");
  return Verdict::yes();
}

/// Sequences one after another.
Verdict fitsThd(const AttentionProblem& problem, Phase phase, ComputeCapability capability) {
  constexpr std::int64_t kGradientMultiple = 16;  // of channels, or gradients would need room for the longest sequences
  if (problem.form.format != QkvFormat::Thd) return Verdict::yes();
  if (capability != ComputeCapability() && capability.major != 9 && capability.major != 10)
    return lacks(fmt::format("with qkv_format thd on GPUs of compute capability {}.{}; it needs 9.0 to 10.3",
                             capability.major, capability.minor));
  if (problem.numSequences == 0) return lacks("without sequences");
  const AttentionForm& form = problem.form;
  if (phase == Phase::Backward && (form.qkChannels % kGradientMultiple != 0 || form.vChannels % kGradientMultiple != 0))
    return lacks(
        fmt::format("for gradients in qkv_format thd unless heads have a multiple of {} channels", kGradientMultiple));
  return Verdict::yes();
}

}  // namespace

Verdict fitsAttentionGraph(const AttentionProblem& problem, Phase phase, ComputeCapability capability) {
  if (const Verdict rules = fitsRules(problem); !rules) return rules;
  if (const Verdict channels = fitsChannels(problem.form, capability); !channels) return channels;
  constexpr std::int64_t kMostBackward = 128;
  if (phase == Phase::Backward && capability.major != 9 && problem.form.qkChannels > kMostBackward)
    return lacks(fmt::format("for gradients of heads of {} channels", problem.form.qkChannels));
  if (const Verdict thd = fitsThd(problem, phase, capability); !thd) return thd;
  return fitsTokens(problem);
}

Verdict fitsFp8AttentionGraph(const AttentionProblem& problem, Phase phase, ElementFormat format,
                              ComputeCapability capability) {
  constexpr std::int64_t kQueryMultiple = 64;  // of masks from the bottom right
  constexpr std::int64_t kKeyMultiple = 128;
  constexpr std::int64_t kCodeMultiple = 16;  // of channels: rows of heads begin at multiples of 16 bytes
  if (phase == Phase::Backward)
    return Verdict::no(
        "cuDNN's FP8 gradients need the scale of the gradients of scores beforehand, but Fuseline finds it in the "
        "step");
  if (format != ElementFormat::E4M3)
    return Verdict::no(fmt::format("cuDNN's FP8 attention reads e4m3, not {}", formatName(format)));
  if (capability != ComputeCapability() && capability.major != 10)
    return Verdict::no(
        "cuDNN's FP8 attention writes bf16 and f16 only on GPUs of compute capability 10.0 and 10.3 (Blackwell)");
  if (const Verdict fits = fitsAttentionGraph(problem, phase, capability); !fits) return fits;
  const AttentionForm& form = problem.form;
  if (form.qkChannels % kCodeMultiple != 0 || form.vChannels % kCodeMultiple != 0)
    return lacks(fmt::format("in FP8 unless heads have a multiple of {} channels", kCodeMultiple));
  if (form.cuSeqlensQSlot >= 0) return lacks("in FP8 with sequence lengths");
  if (const std::int64_t keys = problem.layouts.k.tokens; keys % kKeyMultiple != 0)
    return lacks(fmt::format("in FP8 for {} keys, not a multiple of {}", keys, kKeyMultiple));
  const std::int64_t queries = problem.layouts.q.tokens;
  if (problem.form.isBottomRight && problem.form.right >= 0 && queries % kQueryMultiple != 0)
    return lacks(fmt::format("in FP8 with a mask from the bottom right for {} queries, not a multiple of {}", queries,
                             kQueryMultiple));
  return Verdict::yes();
}

}  // namespace fuseline::cuda
