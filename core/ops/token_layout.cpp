// Shapes of tensors of heads, and the sequences in them.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/token_layout.h"

#include "core/numerics/random.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

constexpr std::size_t kMostSums = 8;  // that a message shows

std::string_view formatName(QkvFormat format) {
  switch (format) {
    case QkvFormat::Sbhd: return "sbhd";
    case QkvFormat::Bshd: return "bshd";
    case QkvFormat::Thd: return "thd";
  }
  return "";
}

std::string_view tokenAxes(QkvFormat format) {
  switch (format) {
    case QkvFormat::Sbhd: return "S, B";
    case QkvFormat::Bshd: return "B, S";
    case QkvFormat::Thd: return "T";
  }
  return "";
}

std::size_t numTokenAxes(QkvFormat format) { return format == QkvFormat::Thd ? 1 : 2; }

bool isOfHeads(const Shape& shape, std::size_t firstAxis, std::int64_t heads, std::int64_t channels) {
  const Shape last(shape.begin() + static_cast<std::ptrdiff_t>(std::min(firstAxis, shape.size())), shape.end());
  return last == Shape{heads, channels} || last == Shape{saturatedProduct(heads, channels)};
}

}  // namespace

AttributeSpec qkvFormatAttribute(std::string name, std::string help) {
  return {.name = std::move(name),
          .type = AttributeType::Text,
          .defaultValue = std::string("sbhd"),
          .choices = {"sbhd", "bshd", "thd"},
          .help = std::move(help)};
}

QkvFormat qkvFormat(std::string_view format) {
  if (format == "bshd") return QkvFormat::Bshd;
  return format == "thd" ? QkvFormat::Thd : QkvFormat::Sbhd;
}

TokenLayout TokenLayout::inRows(std::int64_t width, std::int64_t stride) const {
  TokenLayout layout = *this;
  if (stride == 0 || width == 0) return layout;
  layout.batchStride = batchStride / width * stride;
  layout.tokenStride = tokenStride / width * stride;
  if (width == channels) layout.headStride = stride;
  return layout;
}

Result<TokenLayout> tokenLayout(std::string_view operation, std::string_view port, QkvFormat format, const Shape& shape,
                                std::int64_t heads, std::int64_t channels) {
  if (!isOfHeads(shape, numTokenAxes(format), heads, channels))
    return Error{fmt::format("{}: {} is {}; expected [{}, {}, {}] or [{}, {}] for {}, {} heads of {} channels.",
                             operation, port, toString(shape), tokenAxes(format), heads, channels, tokenAxes(format),
                             saturatedProduct(heads, channels), formatName(format), heads, channels)};
  const std::int64_t width = heads * channels;
  TokenLayout layout{.heads = heads, .channels = channels, .headStride = channels};
  switch (format) {
    case QkvFormat::Sbhd:
      layout.batch = shape[1];
      layout.tokens = shape[0];
      layout.batchStride = width;
      layout.tokenStride = shape[1] * width;
      break;
    case QkvFormat::Bshd:
      layout.batch = shape[0];
      layout.tokens = shape[1];
      layout.batchStride = shape[1] * width;
      layout.tokenStride = width;
      break;
    case QkvFormat::Thd:
      layout.tokens = shape[0];
      layout.tokenStride = width;
      break;
  }
  return layout;
}

std::int64_t numSequences(const TensorSpec& cuSeqlens) { return cuSeqlens.shape.front() - 1; }

namespace {

/// Tokens of one batch entry of the input, and of all of them in thd.
std::int64_t tokensOf(QkvFormat format, const Shape& shape) {
  return format == QkvFormat::Bshd ? shape[1] : shape.front();
}

/// thd: random lengths places. Else: each sequence has 1 to S tokens.
Tensor drawCuSeqlens(const DrawArguments& arguments, QkvFormat format, const TensorSpec& spec, std::int64_t numTokens) {
  const auto tokens = static_cast<double>(numTokens);
  std::vector<double> sums(static_cast<std::size_t>(spec.numElements()));
  if (sums.empty()) return Tensor::zeros(spec);
  RandomStream(arguments.seed, arguments.name).uniforms(0, sums);
  sums.front() = 0.0;
  if (format == QkvFormat::Thd) {
    for (double& sum : sums) sum = std::floor(sum * (tokens + 1.0));
    sums.back() = sums.size() > 1 ? tokens : 0.0;
    std::ranges::sort(sums);
  } else {
    for (std::size_t i = 1; i < sums.size(); ++i)
      sums[i] = sums[i - 1] + std::min(tokens, 1.0 + std::floor(sums[i] * tokens));
  }
  return Tensor::fromDoubles(spec, sums);
}

std::string shown(std::span<const std::int64_t> sums) {
  const auto first = sums.first(std::min(sums.size(), kMostSums));
  return fmt::format("[{}{}]", fmt::join(first, ", "), first.size() < sums.size() ? ", .." : "");
}

}  // namespace

Port cuSeqlensPort(std::string name, QkvFormat format, int slot, int counted) {
  return {.name = std::move(name),
          .shape = "[B + 1]",
          .help = fmt::format("Prefix sums of sequence lengths in tokens, i64; the first is 0. Not given: {}.",
                              format == QkvFormat::Thd ? "random lengths" : "random lengths"),
          .elements = PortElements::Counts,
          .draw = [=](const DrawArguments& arguments) {
            const auto tokens = tokensOf(format, arguments.inputs[static_cast<std::size_t>(counted)].shape);
            return drawCuSeqlens(arguments, format, arguments.inputs[static_cast<std::size_t>(slot)], tokens);
          }};
}

std::optional<Error> checkCuSeqlens(std::string_view operation, std::string_view port, QkvFormat format,
                                    const TensorSpec& cuSeqlens, const TokenLayout& layout) {
  const bool isAny = cuSeqlens.shape.size() == 1 && cuSeqlens.shape.front() > 0;
  if (isAny && (format == QkvFormat::Thd || numSequences(cuSeqlens) == layout.batch)) return std::nullopt;
  const std::string expected = format == QkvFormat::Thd ? "B + 1" : fmt::format("{}", layout.batch + 1);
  return Error{fmt::format("{}: {} has the shape {}; expected [{}], one more entry than there are sequences.",
                           operation, port, toString(cuSeqlens.shape), expected)};
}

namespace {

Error badSums(std::string_view port, std::span<const std::int64_t> sums, std::string_view expected) {
  return Error{fmt::format("{} is {}; {}.", port, shown(sums), expected)};
}

}  // namespace

Result<std::vector<TokenSpan>> sequencesOf(QkvFormat format, const TokenLayout& layout, std::string_view port,
                                           std::span<const std::int64_t> cuSeqlens) {
  if (cuSeqlens.empty())
    return std::vector<TokenSpan>(static_cast<std::size_t>(layout.batch), {.first = 0, .size = layout.tokens});
  if (cuSeqlens.front() != 0) return badSums(port, cuSeqlens, "the first sum must be 0");
  const bool isPacked = format == QkvFormat::Thd;
  std::vector<TokenSpan> sequences;
  for (std::size_t i = 1; i < cuSeqlens.size(); ++i) {
    if (cuSeqlens[i] < cuSeqlens[i - 1]) return badSums(port, cuSeqlens, "the sums must not decrease");
    const std::int64_t size = cuSeqlens[i] - cuSeqlens[i - 1];
    const std::int64_t end = isPacked ? cuSeqlens[i] : size;
    if (end > layout.tokens)
      return badSums(port, cuSeqlens,
                     isPacked ? fmt::format("there are only {} tokens", layout.tokens)
                              : fmt::format("a sequence has at most {} tokens", layout.tokens));
    sequences.push_back({.first = isPacked ? cuSeqlens[i - 1] : 0, .size = size});
  }
  return sequences;
}

}  // namespace fuseline
