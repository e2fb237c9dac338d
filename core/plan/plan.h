// Plan: steps, tensors and their memory. Created once from a fused graph; never changed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/collective/communicator.h"
#include "core/fusion/fuser.h"
#include "core/fusion/step_operands.h"
#include "core/graph/graph.h"
#include "core/quant/apply_recipe.h"

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace fuseline {

enum class TensorRole {
  Input,
  Parameter,
  Output,
  Intermediate,
  OutputGradient,
  Gradient,
  InputGradient,
  ParameterGradient,
  MainGradient,    // a buffer of the caller, to which a parameter's gradient is added
  QuantizerState,  // a scale or an amax history, which outlives the step
  OptimizerState,  // a moment, a float32 copy of a parameter, the number of updates
  Offloaded,       // a tensor that waits for backward in host memory
  Reloaded         // the same, back on the device
};

/// Columns of a wider tensor: pieces of `width` elements, one in each row of `rowStride` elements. Rows of a longer
/// tensor only have a first element.
struct ColumnView {
  std::int64_t width = 0;
  std::int64_t rowStride = 0;     // 0: the tensor is contiguous
  std::int64_t firstElement = 0;  // of the first row

  explicit operator bool() const { return rowStride > 0; }
  bool operator==(const ColumnView&) const = default;
};

/// A tensor of the plan. Views share their storage with the tensor they show.
struct PlanTensor {
  std::string name;  // "x", "fc1.weight", "norm:y", "grad.fc1.weight", "main_grad.fc1.weight", "grad.norm:y"
  TensorSpec spec;
  TensorRole role = TensorRole::Intermediate;
  int storage = -1;
  ColumnView columns = {};
  bool isSaved = false;  // kept from forward for backward
  bool isKept = false;   // its memory has no other use: of steps that `runsOnce`, and of amaxes
  /// A parameter that is stored quantized: only steps that `runsOnce` read it, and it has no memory of the plan.
  bool isInitialOnly = false;
};

/// A piece of memory. Persistent ones (inputs, parameters, their gradients, outputs) never share; the others share
/// the arena by lifetime.
struct Storage {
  std::int64_t bytes = 0;
  std::int64_t offset = 0;  // from the start of the plan's memory
  int firstStep = 0;
  int lastStep = 0;
  bool isPersistent = false;
  bool isOnHost = false;  // its offset counts from the start of the plan's memory of the host
};

struct StepOperand {
  OperandKey key;
  int tensor = -1;  // index into Plan::tensors
  OperandAccess access = OperandAccess::Read;
  /// Set for operands of the GEMMs of a quantized linear op: which GEMM reads it. Two may read one operand, each in its
  /// own direction.
  std::optional<Usage> direction = std::nullopt;
};

/// Quantized tensors that a step produces from one tensor: the whole work of a step with kernel "quantize", and
/// additional work of other steps (fused quantization). Operands of this member: {Output, 0} is the rowwise and
/// {Output, 1} the columnwise quantized tensor; with delayed scaling, {Parameter, i} is the scale and {Residual, i} the
/// amax history of the i-th group of rows, in pairs. {Input, 1} are the sizes of groups; without it groups are equal.
/// {Input, 2} is the amax, if an earlier step computed it, and {Input, 3} that of the transformed tensor; that step has
/// a work without quantizers, whose {Output, 2} and {Output, 3} they are. A piece of a step raises the amax that an
/// earlier piece found, and accumulates to it.
struct QuantizeWork {
  std::string name;    // of the step that would do it separately: "fc1.quantize_input"
  NodeId reader = -1;  // the op that reads the quantized tensors
  TensorType type = TensorType::Input;
  int slot = 0;  // of a weight: its index in the op
  TensorQuantizers quantizers;
  int member = 0;  // after the ops of the step
  /// The tensor: an input of step "quantize", a result of other steps, which is an operand only if it has other
  /// consumers.
  OperandKey source = {0, OperandKind::Input, 0};
  TensorSpec spec;  // of the tensor
  /// Do quantized values and amax follow from the float32 numbers that the step computes, not from the tensor's rounded
  /// elements? This holds for TransformerEngine's activations, and for its norms if the scale is known beforehand.
  bool isUnrounded = false;

  /// Is the tensor's amax found, and nothing else?
  bool isAmaxOnly() const { return !quantizers.any(); }
  /// Spec of the quantizer's source.
  TensorSpec quantizedSpec() const { return {isUnrounded ? DType::F32 : spec.dtype, spec.shape}; }
};

/// Work of a step with kernel "delayed_scaling_update": operands {Parameter, i} are scales, {Residual, i} histories.
struct ScaleUpdateWork {
  DelayedScaling options;
  std::vector<float> maxFinites;  // by state
};

/// Work of a step that begins or ends a copy between device and host memory: {Input, 0} is copied to {Output, 0}. The
/// ending step writes neither; after it the memory of either may be reused.
struct TransferWork {
  enum class Kind { Offload, AwaitOffload, Reload, AwaitReload } kind = Kind::Offload;
  NodeId reader = -1;  // the op that reads it in backward

  bool isWait() const { return kind == Kind::AwaitOffload || kind == Kind::AwaitReload; }
  bool isOffload() const { return kind == Kind::Offload || kind == Kind::AwaitOffload; }
};

/// Work of a step that communicates with the other ranks: an operand that is read goes to the next one that is written,
/// one that is accumulated to is reduced in place. A collective may be two steps, with other work between them: one
/// begins it, and the other one, which reads all operands, ends when it has ended.
struct CollectiveWork {
  enum class Half : std::uint8_t { Whole, Begin, Await };

  CollectiveKind kind = CollectiveKind::AllGather;
  Reduction reduction = Reduction::Sum;
  Half half = Half::Whole;
  /// Number of elements of each operand of an all-reduce, from its start; -1: all.
  std::int64_t numElements = -1;
  /// Rows from those of one rank to those of the next one in an all-gather, if others lie between; 0: none do.
  std::int64_t rankRows = 0;
  /// Number of parts in which rows are sent beside a GEMM, of which this is one; 1: it stays whole; 0: it takes no
  /// place there.
  int chunks = 0;
  std::string chunkProblem;  // why there are fewer than wanted

  bool isWait() const { return half == Half::Await; }
};

/// One launch. An elementwise step may get the same memory for an input without later consumers and an output of the
/// same spec: kernels must load an element before they store it. `nodes` are its ops in the graph, in forward order;
/// empty for a gradient sum at a branch and for steps that a recipe adds.
struct Step {
  std::string name;    // "fc1.linear", "experts (wgrad)", "ForwardLinearEpilogue(fc1.linear, fc1.bias, act)"
  std::string kernel;  // "BasicLinear", "elementwise", a rule's `becomes`, "accumulate"
  std::string rule;    // empty for a basic op
  Phase phase = Phase::Forward;
  std::vector<NodeId> nodes;
  std::vector<StepOperand> operands;
  /// Nothing to do: its outputs are views of its inputs.
  bool isView = false;
  std::string note;  // remarks about its ops; usually empty
  std::vector<QuantizeWork> copies;
  std::optional<ScaleUpdateWork> scaleUpdate;
  std::optional<TransferWork> transfer;
  std::optional<CollectiveWork> collective;
  /// Its inputs never change from run to run: it runs before the first one only.
  bool runsOnce = false;
  /// Inputs of backward, if the step computes only some of its op's gradients; else the op's own context applies.
  std::optional<OperationContext> context;
  /// Set: a piece of a GEMM, which computes these rows of its result.
  RowWindow window = {};
  std::int64_t flops = 0;
  std::int64_t bytesRead = 0;
  std::int64_t bytesWritten = 0;

  const StepOperand* find(OperandKey key) const;
  /// The quantization of this tensor; nullptr: none.
  const QuantizeWork* workOn(OperandKey key) const;
  bool isQuantize() const { return nodes.empty() && !copies.empty(); }
  /// Is it launched in every run?
  bool isLaunched() const { return !isView && !runsOnce; }
  /// Does it use the device?
  bool isWork() const {
    return isLaunched() && !(transfer && transfer->isWait()) && !(collective && collective->isWait());
  }
};

struct Plan {
  std::vector<Step> steps;
  std::vector<PlanTensor> tensors;
  std::vector<Storage> storages;
  std::int64_t persistentBytes = 0;
  std::int64_t arenaBytes = 0;
  /// Forward tensors that are kept until backward (parameters and inputs not counted).
  std::int64_t savedForBackwardBytes = 0;
  /// Host memory for offloaded forward tensors.
  std::int64_t hostBytes = 0;

  std::int64_t peakBytes() const { return persistentBytes + arenaBytes; }
  std::int64_t numLaunches() const;
  /// -1 when there is none.
  int findTensor(std::string_view name) const;
  const TensorSpec& spec(const StepOperand& operand) const {
    return tensors[static_cast<std::size_t>(operand.tensor)].spec;
  }
};

struct PlanOptions {
  /// Every stored tensor gets its own memory, so that it can be dumped after a run.
  bool keepIntermediates = false;
  /// Columns may be changed where they are and joined again without a copy: a part, and the whole before, are then
  /// lost.
  bool joinsInPlace = true;
  /// Collectives run beside the steps that do not need them. Only of a graph of one of several ranks.
  bool overlapsCollectives = true;
  /// Parts in which a gather or scatter of rows takes place beside the GEMM that needs or makes them; 1: none is
  /// beside it; 0: as many as a model of GPUs finds best. Needs overlapsCollectives.
  int chunks = 1;
};

Plan makePlan(const Graph& graph, const FusionReport& report, const PlanOptions& options = {});
/// nullopt: it was stopped.
std::optional<Plan> makePlan(const Graph& graph, const FusionReport& report, const PlanOptions& options,
                             const std::stop_token& stop);

/// One line per step, then the memory plan. Deterministic.
std::string toString(const Plan& plan);

/// The program of an elementwise step, or of the elementwise members [first, last) of a fused step (a GEMM's epilogue).
/// In a backward step the members are composed back to front. The result of a member outside the range is loaded from
/// that member's operand key.
ElementwiseProgram composeProgram(const Graph& graph, const Step& step, int first = 0, int last = -1);

}  // namespace fuseline
