// BasicOperation: one op as data. Everything the product shows, checks, plans or runs about an op derives from it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/collective/communicator.h"
#include "core/ops/attributes.h"
#include "core/ops/elementwise.h"
#include "core/support/result.h"
#include "core/tensor/tensor.h"

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace fuseline {

/// Kind of a tensor's elements. Numbers are floating-point and may have a gradient; counts are integers, such as the
/// sizes of groups, and have none.
enum class PortElements { Numbers, Counts, Any };

/// Context with which an op draws one of its inputs.
struct DrawArguments {
  const Attributes& attributes;
  std::span<const TensorSpec> inputs;
  std::uint64_t seed = 0;
  std::string_view name;  // of the tensor in the pipeline
};

/// An input or output. `shape` is the symbolic shape that help texts show, such as "[..., H]".
struct Port {
  std::string name;
  std::string shape;
  std::string help;
  PortElements elements = PortElements::Numbers;
  /// A legal value for an input that a run was not given, by seed and name; counts need one. Not set: N(0, 1).
  std::function<Tensor(const DrawArguments&)> draw;
};

/// How a parameter starts: a constant, or uniform in [-bound, bound].
struct Initialisation {
  enum class Kind { Constant, Uniform } kind = Kind::Constant;
  double value = 0.0;  // the constant, or the bound
};

struct ParameterSpec {
  std::string name;
  std::string shape;
  std::string help;
  std::function<Initialisation(const Attributes&, const TensorSpec&)> initialise;
  /// Can its gradient go to a main_grad buffer? The op then has the attributes for it (core/ops/parameters.h).
  bool hasMainGrad = false;
};

/// Results of inference, in the order of the declared ports, parameters and residuals.
struct OperationSpecs {
  std::vector<TensorSpec> outputs;
  std::vector<TensorSpec> parameters;
  std::vector<TensorSpec> residuals;
};

/// Product of nonnegative numbers. Saturates at a value that leaves room for some sums.
constexpr std::int64_t saturatedProduct(std::int64_t a, std::int64_t b) {
  constexpr std::int64_t kMost = std::int64_t{1} << 58;
  return a > 0 && b > kMost / a ? kMost : a * b;
}

/// Floating-point operations of one call; bytes follow from the specs.
struct FlopCount {
  std::int64_t forward = 0;
  std::int64_t backward = 0;
  /// Part of the backward operations in the GEMMs for the gradients of the input and of the weight.
  std::int64_t dgrad = 0;
  std::int64_t wgrad = 0;

  /// GEMMs for gradients that are not requested are not computed.
  std::int64_t backwardFor(bool isInputWanted, bool isWeightWanted) const {
    return backward - (isInputWanted ? 0 : dgrad) - (isWeightWanted ? 0 : wgrad);
  }
};

/// A tensor in double precision, for the reference implementations only.
struct ReferenceTensor {
  Shape shape;
  std::vector<double> values;

  std::int64_t rows() const { return TensorSpec{.shape = shape}.rows(); }
  std::int64_t cols() const { return shape.empty() ? 1 : shape.back(); }
};

struct ReferenceForward {
  std::vector<ReferenceTensor> outputs;
  std::vector<ReferenceTensor> residuals;
};

/// Gradients, one per input and one per parameter.
struct ReferenceBackward {
  std::vector<ReferenceTensor> inputs;
  std::vector<ReferenceTensor> parameters;
};

/// The gradients that are requested.
struct GradientNeeds {
  std::vector<bool> inputs;
  std::vector<bool> parameters;

  bool anyInput() const;
  bool anyParameter() const;
};

/// A tensor of an op that backward reads.
struct SavedTensor {
  OperandKind kind;  // Input, Parameter, Output or Residual
  int slot = 0;
  auto operator<=>(const SavedTensor&) const = default;
};

/// Position of an op in a finished graph.
struct GraphPlace {
  std::string_view id;  // of its node
  bool isTraining = false;
};

/// Inputs of backward: tensors by kind and slot, and small typed state. Written once, at planning time, from specs;
/// compute code never writes it (TransformerEngine #2877, #3496).
struct OperationContext {
  std::vector<SavedTensor> tensors;
  Attributes state;
};

struct SaveArguments {
  const Attributes& attributes;
  std::span<const TensorSpec> inputs;
  const GradientNeeds& needs;
};

/// The saved tensors as the backward reference reads them.
class SavedValues {
 public:
  void add(SavedTensor key, const ReferenceTensor& tensor) { m_tensors.emplace_back(key, &tensor); }
  const ReferenceTensor& input(int slot = 0) const { return find({OperandKind::Input, slot}); }
  const ReferenceTensor& parameter(int slot = 0) const { return find({OperandKind::Parameter, slot}); }
  const ReferenceTensor& output(int slot = 0) const { return find({OperandKind::Output, slot}); }
  const ReferenceTensor& residual(int slot = 0) const { return find({OperandKind::Residual, slot}); }
  bool has(SavedTensor key) const;
  void setState(Attributes state) { m_state = std::move(state); }
  const Attributes& state() const { return m_state; }

 private:
  const ReferenceTensor& find(SavedTensor key) const;
  std::vector<std::pair<SavedTensor, const ReferenceTensor*>> m_tensors;
  Attributes m_state;
};

/// A legal call of an op.
struct OperationCall {
  Attributes attributes;
  std::vector<TensorSpec> inputs;
};

/// One basic op of a composite's expansion, in chain order.
struct ExpandedOperation {
  std::string suffix;  // appended to the composite's id: "fc1" + "." + "bias"
  std::string operation;
  Attributes attributes;
};

/// The communication of an op on several ranks; nothing: the pass hands its tensor on.
struct CommunicationPasses {
  std::optional<CollectiveKind> forward;
  std::optional<CollectiveKind> backward;
  /// Backward gathers the input again: forward does not keep it.
  bool gathersAgain = false;
};

/// An op as data. A basic op has the mathematics; a composite has only `expand` and vanishes when a document is
/// lowered. The main input is inputs[0], the main output outputs[0]; the others are "extra" tensors.
struct FusibleOperation {
  std::string name;
  std::string category;
  std::string summary;  // one sentence
  std::string formula;
  std::string derivative;
  std::string source;  // reference for the mathematics
  /// Further lines of `fuseline ops`; may be empty.
  std::string details;
  /// Other words people search for ("relu", "fc", "residual").
  std::vector<std::string> keywords;
  /// A remark about the op in a plan with these attributes, such as "one rank: nothing to measure"; not set or empty:
  /// none.
  std::function<std::string(const Attributes&)> note;

  std::vector<Port> inputs;
  std::vector<ParameterSpec> parameters;
  std::vector<Port> outputs;
  std::vector<Port> residuals;
  std::vector<AttributeSpec> attributes;

  /// Set for ops whose mathematics depends on their place: completes the attributes, once, when a graph is finished.
  /// Attributes that inference reads are not changed.
  std::function<void(Attributes&, const GraphPlace&)> settle;

  /// Shapes and dtypes of all of the op's outputs, or a sentence with both actual values.
  std::function<Result<OperationSpecs>(const Attributes&, std::span<const TensorSpec> inputs)> infer;
  /// Set if shapes depend on the size of the tensor-parallel group: the specs on each of `ranks` ranks. `infer` is this
  /// with one rank.
  std::function<Result<OperationSpecs>(const Attributes&, std::span<const TensorSpec> inputs, std::int64_t ranks)>
      inferOnRanks;
  std::function<FlopCount(const Attributes&, std::span<const TensorSpec> inputs)> flops;

  /// Pure: inputs and parameters in, outputs and residuals out. Double precision, no rounding.
  std::function<ReferenceForward(const Attributes&, std::span<const ReferenceTensor> inputs,
                                 std::span<const ReferenceTensor> parameters)>
      forwardCompute;
  /// Names the tensors that backward will read, from specs alone.
  std::function<OperationContext(const SaveArguments&)> saveContext;
  /// Gradients from saved tensors. gradOutputs has one entry per output (zeros if there is no gradient).
  std::function<ReferenceBackward(const Attributes&, const SavedValues&, std::span<const ReferenceTensor> gradOutputs)>
      backwardCompute;

  /// Set for ops that work element by element; backends then need no separate kernel for them.
  ElementwiseDefinition elementwise;
  /// Set if an op's kernel also runs such a definition as a part of its work.
  ElementwiseDefinition inner;
  /// Name of the kernel that runs the op by itself. Empty: "elementwise" for an elementwise op, else the op's name.
  std::string kernel;

  /// Recipes quantize the operands that it multiplies, x, weights and dy, or that it passes on, x and dy.
  bool isQuantizable = false;

  /// y is x itself, perhaps in another shape with the same number of elements, and dx is dy: plans launch nothing for
  /// it.
  bool isView = false;

  /// Set for collectives in the graph of one of several ranks (core/sharding): plans communicate for them.
  std::optional<CommunicationPasses> communication;

  /// Set for composites.
  std::function<std::vector<ExpandedOperation>(const Attributes&)> expand;

  /// Set for ops whose ports, parameters or mathematics depend on their attributes: the op for these. The unspecialized
  /// op is that for the default attributes; it does not read attributes without a default. Name and attributes stay the
  /// same.
  /// Errors: a sentence, with the wrong attribute as the subject.
  std::function<Result<FusibleOperation>(const FusibleOperation& self, const Attributes&)> specialise;

  /// Set where the main input needs more structure than rows and columns, such as heads: a call whose main input has
  /// about `elements` elements, for costs and suites that walk the library.
  std::function<OperationCall(std::int64_t elements, DType dtype)> exampleCall;

  bool isComposite() const { return static_cast<bool>(expand); }
  bool isElementwise() const { return static_cast<bool>(elementwise); }
  std::string kernelName() const;
  std::string noteFor(const Attributes& given) const;
  int inputIndex(std::string_view port) const;   // -1 when there is none
  int outputIndex(std::string_view port) const;  // -1 when there is none
  const AttributeSpec* attribute(std::string_view name) const;
};

/// The return types of op files show the kind of op that they define.
using BasicOperation = FusibleOperation;
using CompositeOperation = FusibleOperation;

/// A shared op, or one of a catalog, which must then outlive its users.
using OperationPointer = std::shared_ptr<const FusibleOperation>;

/// Points to an op without owning it.
OperationPointer unowned(const FusibleOperation& operation);

/// The op for these attributes: the result of `specialise`, else the op itself, unowned.
Result<OperationPointer> specialised(const FusibleOperation& operation, const Attributes& attributes);

/// An error unless ports for numbers get floating-point tensors, and ports for counts integers:
/// "GELU: x is [4] i64, but it must be f32, f16 or bf16; integers are counts only."
std::optional<Error> checkElements(const FusibleOperation& operation, std::span<const TensorSpec> inputs);

/// A sentence where a function of an op's file returns another number of tensors than the op declares.
Verdict checkCount(const FusibleOperation& operation, std::string_view function, std::string_view what,
                   std::size_t given, std::size_t declared);

/// Infers the op's specs from inputs with readable elements.
/// Errors: those of its infer; a number of tensors other than declared, which is a fault in the op's file.
Result<OperationSpecs> inferSpecs(const FusibleOperation& operation, const Attributes& attributes,
                                  std::span<const TensorSpec> inputs);

/// Every attribute's default; those without one are not set.
Attributes defaultAttributes(const FusibleOperation& operation);

/// An op whose ports, parameters or mathematics depend on these attributes. specialise: makes the op for given ones; it
/// may not fail for the defaults.
FusibleOperation structuredOperation(const std::vector<AttributeSpec>& attributes,
                                     Result<FusibleOperation> (*specialise)(const Attributes&),
                                     OperationCall (*exampleCall)(std::int64_t elements, DType dtype) = nullptr);

}  // namespace fuseline
