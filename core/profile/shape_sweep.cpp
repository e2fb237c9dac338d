// Reads axes, and lays out their grid.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/shape_sweep.h"

#include "core/quant/recipe_list.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <limits>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

constexpr std::string_view kRecipeAxis = "recipe";
constexpr std::size_t kMostHalvings = 3;
/// At the seconds that a point takes, an hour or more.
constexpr std::size_t kMostPoints = 1000;
constexpr std::int64_t kMostRanks = 64;

Error axisError(std::string_view text, std::string_view problem) {
  return {fmt::format("--over {}: {} Sizes are like M=128:16384:x2, M=128:1024:+128 or M=512,1024,4096; ranks like "
                      "ranks=1,2,4; recipes like recipe=none,mxfp8.",
                      text, problem),
          ErrorKind::Usage};
}

Error sizesError(std::string problem) { return {std::move(problem), ErrorKind::Usage}; }

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t end = text.find(separator); end != std::string_view::npos; end = text.find(separator)) {
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  parts.push_back(text);
  return parts;
}

std::optional<std::int64_t> sizeOf(std::string_view text) {
  std::int64_t size = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), size);
  const bool isSize = problem == std::errc() && end == text.data() + text.size() && size > 0;
  return isSize ? std::optional(size) : std::nullopt;
}

/// How one size follows from the one before: "x2" or "+128".
struct Progression {
  bool multiplies = false;
  std::int64_t by = 0;

  std::optional<std::int64_t> after(std::int64_t size, std::int64_t last) const {
    if (multiplies) return size > last / by ? std::nullopt : std::optional(size * by);
    return size > last - by ? std::nullopt : std::optional(size + by);
  }
};

std::optional<Progression> progressionOf(std::string_view text) {
  if (text.empty() || (text.front() != 'x' && text.front() != '+')) return std::nullopt;
  const Progression progression{.multiplies = text.front() == 'x', .by = sizeOf(text.substr(1)).value_or(0)};
  const bool isOne = progression.by >= (progression.multiplies ? 2 : 1);
  return isOne ? std::optional(progression) : std::nullopt;
}

/// "128:16384:x2"
Result<std::vector<std::int64_t>> rangeOf(std::string_view values) {
  const std::vector<std::string_view> parts = split(values, ':');
  if (parts.size() != 3) return sizesError("expected FIRST:LAST:STEP.");
  const std::optional<std::int64_t> first = sizeOf(parts[0]);
  const std::optional<std::int64_t> last = sizeOf(parts[1]);
  const std::optional<Progression> step = progressionOf(parts[2]);
  if (!first || !last || *last < *first)
    return sizesError(
        fmt::format("the last size must be at least the first one; found {} and {}.", parts[0], parts[1]));
  if (!step) return sizesError(fmt::format("expected a step such as x2 or +128, found '{}'.", parts[2]));
  std::vector<std::int64_t> sizes;
  for (std::optional<std::int64_t> size = first; size && sizes.size() <= kMostPoints; size = step->after(*size, *last))
    sizes.push_back(*size);
  return sizes;
}

Result<std::vector<std::int64_t>> listOf(std::string_view values) {
  std::vector<std::int64_t> sizes;
  for (const std::string_view part : split(values, ',')) {
    const std::optional<std::int64_t> size = sizeOf(part);
    if (!size) return sizesError(fmt::format("expected a positive whole number, found '{}'.", part));
    if (std::ranges::count(sizes, *size) > 0) return sizesError(fmt::format("{} is listed twice.", *size));
    sizes.push_back(*size);
  }
  return sizes;
}

/// Full names, so that a record contains "MXFP8BlockScaling" even if an abbreviation was given.
Result<std::vector<std::string>> recipesOf(std::string_view text, std::string_view values) {
  const Result<std::vector<const RecipeDefinition*>> found = recipesNamed(values);
  if (!found) return Error{fmt::format("--over {}: {}", text, found.error().message), ErrorKind::Usage};
  std::vector<std::string> recipes;
  for (const RecipeDefinition* recipe : *found) {
    if (std::ranges::count(recipes, recipe->name) > 0)
      return axisError(text, fmt::format("{} is listed twice.", recipe->name));
    recipes.push_back(recipe->name);
  }
  if (recipes.empty()) return axisError(text, "expected the names of recipes, found none.");
  return recipes;
}

/// Adds the axis that a text describes. Errors: those of parseSweep().
Result<void> add(ShapeSweep& sweep, std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) return axisError(text, "expected NAME=VALUES.");
  const std::string_view name = text.substr(0, equals);
  const std::string_view values = text.substr(equals + 1);
  const bool isTwice =
      name == kRecipeAxis ? !sweep.recipes.empty() : std::ranges::count(sweep.axes, name, &SweepAxis::symbol) > 0;
  if (isTwice) return axisError(text, fmt::format("{} is an axis already.", name));
  if (name == kRecipeAxis) {
    Result<std::vector<std::string>> recipes = recipesOf(text, values);
    if (!recipes) return recipes.error();
    sweep.recipes = std::move(*recipes);
    return {};
  }
  Result<std::vector<std::int64_t>> sizes = parseSizes(values);
  const bool isOfRanks = name == kRanksAxis || name == kChunksAxis;
  if (isOfRanks && (!sizes || std::ranges::max(*sizes) > kMostRanks))
    return axisError(text, fmt::format("expected numbers of {0} from 1 to {1}, such as {0}=1,2,4.", name, kMostRanks));
  if (!sizes) return axisError(text, sizes.error().message);
  sweep.axes.push_back({.symbol = std::string(name), .sizes = std::move(*sizes)});
  return {};
}

std::size_t numPoints(const ShapeSweep& sweep) {
  std::size_t count = std::max<std::size_t>(sweep.recipes.size(), 1);
  for (const SweepAxis& axis : sweep.axes) count = std::min(count * axis.sizes.size(), kMostPoints + 1);
  return count;
}

/// Counts through the sizes of all axes, the first of them fastest.
SweepPoint pointAt(const ShapeSweep& sweep, std::size_t index) {
  SweepPoint point;
  for (const SweepAxis& axis : sweep.axes) {
    point.symbols.emplace_back(axis.symbol, axis.sizes[index % axis.sizes.size()]);
    index /= axis.sizes.size();
  }
  if (!sweep.recipes.empty()) point.recipe = sweep.recipes[index];
  return point;
}

/// "x2" or "+128", where each size follows from the one before in this way. Sizes: at least two.
std::optional<std::string> stepText(std::span<const std::int64_t> sizes) {
  const std::int64_t ratio = sizes[1] / sizes[0];
  const std::int64_t difference = sizes[1] - sizes[0];
  const auto goOnBy = [&](auto follows) {
    return std::ranges::adjacent_find(sizes, std::not_fn(follows)) == sizes.end();
  };
  if (ratio > 1 && goOnBy([ratio](std::int64_t a, std::int64_t b) { return b % a == 0 && b / a == ratio; }))
    return fmt::format("x{}", ratio);
  if (difference > 0 && goOnBy([difference](std::int64_t a, std::int64_t b) { return b - a == difference; }))
    return fmt::format("+{}", difference);
  return std::nullopt;
}

}  // namespace

Result<std::vector<std::int64_t>> parseSizes(std::string_view text) {
  return text.find(':') == std::string_view::npos ? listOf(text) : rangeOf(text);
}

std::string sizesText(std::span<const std::int64_t> sizes) {
  if (sizes.size() > 2)
    if (const std::optional<std::string> step = stepText(sizes))
      return fmt::format("{}:{}:{}", sizes.front(), sizes.back(), *step);
  return fmt::format("{}", fmt::join(sizes, ","));
}

std::vector<std::int64_t> sizesAround(std::int64_t size) {
  std::vector<std::int64_t> sizes = {size};
  while (sizes.size() <= kMostHalvings && sizes.front() % 2 == 0) sizes.insert(sizes.begin(), sizes.front() / 2);
  if (size <= std::numeric_limits<std::int64_t>::max() / 2) sizes.push_back(2 * size);
  return sizes;
}

std::string SweepPoint::name() const {
  std::vector<std::string> parts;
  for (const auto& [symbol, size] : symbols) parts.push_back(fmt::format("{}={}", symbol, size));
  if (!recipe.empty()) parts.push_back(recipe);
  return fmt::format("{}", fmt::join(parts, " "));
}

void SweepPoint::applyTo(RunSpec& settings) const {
  for (const auto& [symbol, size] : symbols) {
    if (symbol == kRanksAxis || symbol == kChunksAxis) {
      (symbol == kRanksAxis ? settings.ranks : settings.chunks) = static_cast<int>(size);
      continue;
    }
    std::erase_if(settings.symbols, [&name = symbol](const auto& set) { return set.first == name; });
    settings.symbols.emplace_back(symbol, size);
  }
  if (!recipe.empty()) settings.recipe = recipe;
}

Result<void> ShapeSweep::checkSize() const {
  if (numPoints(*this) <= kMostPoints) return {};
  return Error{fmt::format("expected at most {} points, found more. Take larger steps.", kMostPoints),
               ErrorKind::Usage};
}

std::vector<SweepPoint> ShapeSweep::points() const {
  std::vector<SweepPoint> points;
  for (std::size_t i = 0; i < numPoints(*this); ++i) points.push_back(pointAt(*this, i));
  return points;
}

Result<ShapeSweep> parseSweep(std::span<const std::string> texts) {
  ShapeSweep sweep;
  for (const std::string& text : texts)
    if (Result<void> added = add(sweep, text); !added) return added.error();
  if (sweep.axes.empty())
    return Error{
        "--over: expected an axis of sizes, such as M=128:16384:x2. To compare recipes at one size: fuseline run FILE "
        "--recipe none,mxfp8.",
        ErrorKind::Usage};
  if (const Result<void> fits = sweep.checkSize(); !fits)
    return Error{"--over: " + fits.error().message, ErrorKind::Usage};
  return sweep;
}

}  // namespace fuseline
