// Recipe: which tensors of a GEMM become which low-precision format. A definition is data, one file a recipe; a recipe
// is a definition with the values of its fields.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/attributes.h"
#include "core/quant/quantizer.h"
#include "core/support/json.h"
#include "core/support/result.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fuseline {

/// Field of a recipe, and the context of TransformerEngine in which a module stores its weights quantized.
inline constexpr const char* kQuantizedModelInit = "quantized_model_init";

/// Role of a tensor in a linear op.
enum class TensorType : std::uint8_t { Input, Weight, GradOutput };
std::string_view roleName(TensorType role);  // "input", "weight", "grad_output"

/// The three GEMMs of a linear op: y = x w^T, dx = dy w, dw = dy^T x.
enum class GemmRole : std::uint8_t { Fprop, Dgrad, Wgrad };
std::string_view roleName(GemmRole role);  // "fprop", "dgrad", "wgrad"

/// An operand of a GEMM.
struct OperandRole {
  TensorType tensor = TensorType::Input;
  GemmRole gemm = GemmRole::Fprop;
  bool operator==(const OperandRole&) const = default;
};

/// The six operands there are, in the order of the GEMMs.
const std::vector<OperandRole>& operandRoles();

/// The direction in which the GEMM reads the tensor: rowwise if it contracts its columns, else columnwise.
Usage directionOf(OperandRole role);

/// A compute capability, such as 9.0.
struct ComputeCapability {
  int major = 0;
  int minor = 0;
  auto operator<=>(const ComputeCapability&) const = default;
};
/// "9.0 (sm_90)".
std::string toString(ComputeCapability capability);
/// "sm_90" is 9.0; nothing for a text that names no GPU.
std::optional<ComputeCapability> parseCapability(std::string_view architecture);

/// A kernel's requirements on a GPU.
struct HardwareNeed {
  ComputeCapability minimum;
  /// The first one that is too new.
  std::optional<ComputeCapability> below = std::nullopt;

  bool isMetBy(ComputeCapability device) const;
};
/// "compute capability 10.0 (sm_100) or newer, below 12.0 (sm_120)".
std::string toString(const HardwareNeed& need);

struct RecipeDefinition {
  std::string name;  // "MXFP8BlockScaling"
  std::string summary;
  std::string source;
  std::vector<AttributeSpec> fields;
  /// Nothing: any device.
  std::optional<HardwareNeed> hardware = std::nullopt;
  /// Scales follow from the amaxes of earlier steps, see delayed_scaling.h.
  bool hasState = false;
  /// Checks that ranges and choices cannot express. May be empty.
  std::function<Verdict(const Attributes& fields)> check;
  /// How an operand is quantized; nothing when it is not. May be empty: then none is.
  std::function<std::optional<QuantizerSpec>(const Attributes& fields, OperandRole role)> quantizer;
  /// Whether backward reads an operand without a quantizer as the dequantized rowwise tensor. May be empty.
  std::function<bool(const Attributes& fields, OperandRole role)> isDequantized = {};
  /// Every tensor of a linear op has a quantizer, if only one that does nothing, so that both operands of a GEMM must
  /// fit each other.
  bool isCustom = false;
  /// Requirements of the hardware's GEMMs on the fields, if it can run the recipe. May be empty.
  std::function<Verdict(const Attributes& fields, ComputeCapability device)> checkDevice = {};

  const AttributeSpec* field(std::string_view name) const;
};

/// A recipe whose quantizer an operand uses.
struct QuantizerSource {
  const RecipeDefinition* recipe = nullptr;
  Attributes fields;  // all of them
  bool operator==(const QuantizerSource&) const = default;
};
/// Fields missing in `fields` get their defaults. Errors: those of Recipe::create() without overrides.
Result<QuantizerSource> quantizerSource(const RecipeDefinition& recipe, const Attributes& fields = {});

/// Replaces the recipe's setting for an operand. A later override takes precedence over an earlier one.
struct RoleOverride {
  std::optional<TensorType> tensor;  // nothing: any
  std::optional<GemmRole> gemm;      // nothing: any
  /// Nothing: it is left in high precision, unless there is a quantizer.
  std::optional<ElementFormat> format;
  /// Empty: at every op.
  std::string op = {};
  /// The operand is quantized as by this recipe.
  std::optional<QuantizerSource> quantizer = std::nullopt;
  /// The columnwise tensor is quantized from the dequantized rowwise one: TransformerEngine's columnwise_source
  /// "rowwise_dequantized".
  bool isOfRowwise = false;

  bool matches(OperandRole role) const;
  bool operator==(const RoleOverride&) const = default;
};

class Recipe {
 public:
  /// Whether an override for this op counts.
  using IsAt = std::function<bool(const std::string& op)>;

  /// Fields missing in `fields` get their defaults. The definition must outlive the recipe.
  /// Errors: an unknown field, a wrong type, a value out of range, a refusal by the definition's check or an override.
  static Result<Recipe> create(const RecipeDefinition& definition, const Attributes& fields = {},
                               std::vector<RoleOverride> overrides = {});

  const RecipeDefinition& definition() const { return *m_definition; }
  const std::string& name() const { return m_definition->name; }
  const Attributes& fields() const { return m_fields; }
  const std::vector<RoleOverride>& overrides() const { return m_overrides; }

  /// Nothing: the operand stays in high precision. isAt: whether the operand's op is the one that an override names;
  /// without it only overrides for every op count.
  std::optional<QuantizerSpec> quantizerFor(OperandRole role, const IsAt& isAt = {}) const;
  /// Whether a backward GEMM reads an operand without a quantizer as the dequantized rowwise tensor.
  bool isDequantized(OperandRole role, const IsAt& isAt = {}) const;
  /// Whether the operands of every GEMM can be multiplied by each other; no names the operands.
  Verdict checkGemms(const IsAt& isAt = {}) const;

  bool operator==(const Recipe& other) const;

 private:
  Recipe(const RecipeDefinition& definition, Attributes fields, std::vector<RoleOverride> overrides);
  struct Operand {
    std::optional<QuantizerSpec> quantizer;
    bool isDequantized = false;
  };
  Operand operandFor(OperandRole role, const IsAt& isAt) const;
  Verdict checkOverrides() const;
  Verdict checkFormat(const RoleOverride& special) const;
  Verdict checkDelayed() const;

  const RecipeDefinition* m_definition;
  Attributes m_fields;
  std::vector<RoleOverride> m_overrides;
};

/// The recipes of this build, in the order of core/quant/recipes/CMakeLists.txt.
const std::vector<RecipeDefinition>& builtinRecipes();
/// nullptr when there is none.
const RecipeDefinition* findRecipe(std::string_view name);

/// "needs compute capability 8.9 (sm_89) or newer"; "runs on any device".
std::string hardwareText(const RecipeDefinition& recipe);
/// Whether a device of this capability can run the recipe's GEMMs; no names the recipes that it can run, or the field.
/// The library of an actual device takes precedence: see Backend::multiplies().
Verdict supports(const Recipe& recipe, ComputeCapability device);
/// Whether such a device supports the fields, independent of native GEMMs; no names the field.
Verdict fieldsFit(const Recipe& recipe, ComputeCapability device);
/// Names of the recipes with GEMMs that such a device can run, without CustomRecipe.
std::vector<std::string> recipesFor(ComputeCapability device);

/// Values written as text, each in the type of its field: "margin=2", "fp8_format=E4M3", "use_power_2_scales=true".
/// Errors: an unknown field, a text that is no value of its type.
Result<Attributes> parseFields(const RecipeDefinition& definition,
                               const std::vector<std::pair<std::string, std::string>>& texts);

/// The recipe with this name, or the only one that begins with it, in any case: "mxfp8". Errors (Usage): there is no
/// such recipe, with the nearest name.
Result<const RecipeDefinition*> recipeNamed(std::string_view name);

/// {"name": ..., "fields": {...}, "overrides": [{"tensor": ..., "gemm": ..., "format": ...}]}; all fields are written.
/// Instead of a format an override may have a quantizer: a recipe's name, or an object with it and its fields.
Json toJson(const Recipe& recipe);
/// Fields may also be next to the name: {"name": "DelayedScaling", "margin": 0}. Error messages contain the JSON
/// pointer.
Result<Recipe> recipeFromJson(const Json& json);

/// The JSON Schema of the input of recipeFromJson(), built from the definitions; null is allowed, too.
Json recipeSchema();

}  // namespace fuseline
