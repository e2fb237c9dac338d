// cuDNN for the host's GPU: descriptors are kept as they are told, and a plan runs the graph that they describe.
// SPDX-License-Identifier: Apache-2.0
// What a descriptor lacks, or has in another type than NVIDIA documents (cudnn_graph.h), it refuses when it is
// finalized.
#include "kernels/cuda/attention/cudnn.h"

#include "tests/support/host_gpu/host_gpu.h"
#include "tests/support/simt/host_graphs.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

namespace fuseline::host_gpu {

namespace {

using namespace cuda;
using Attribute = CudnnAttribute;
using Type = CudnnType;

constexpr CudnnStatus kSuccess = 0;
constexpr CudnnStatus kBadParameter = 2000;
constexpr std::int64_t kWorkspaceBytes = 256;

struct Told {
  Type type;
  std::int64_t count;
  std::vector<std::byte> bytes;
};

struct Descriptor {
  CudnnDescriptorType type;
  std::map<Attribute, Told> attributes;
  bool isFinal = false;

  template <class T>
  std::vector<T> all(Attribute attribute) const {
    const auto found = attributes.find(attribute);
    if (found == attributes.end()) return {};
    std::vector<T> values(static_cast<std::size_t>(found->second.count));
    for (std::size_t i = 0; i < values.size(); ++i)
      std::memcpy(&values[i], found->second.bytes.data() + i * sizeof(T), sizeof(T));
    return values;
  }
  template <class T>
  T one(Attribute attribute) const {
    return all<T>(attribute).at(0);
  }
  const Descriptor& other(Attribute attribute) const {
    return *static_cast<const Descriptor*>(one<CudnnDescriptor>(attribute));
  }
};

Descriptor& of(CudnnDescriptor descriptor) { return *static_cast<Descriptor*>(descriptor); }

struct Needed {
  Attribute attribute;
  Type type;
};

std::vector<Needed> neededBy(const Descriptor& descriptor) {
  const bool isIndex = descriptor.type == CudnnDescriptorType::Pointwise &&
                       descriptor.one<CudnnPointwise>(Attribute::PointwiseMode) == CudnnPointwise::Index;
  switch (descriptor.type) {
    case CudnnDescriptorType::Pointwise:
      if (isIndex) return {{Attribute::PointwisePrecision, Type::DataType}, {Attribute::PointwiseAxis, Type::Int64}};
      return {{Attribute::PointwiseMode, Type::PointwiseMode}, {Attribute::PointwisePrecision, Type::DataType}};
    case CudnnDescriptorType::EngineHeuristics:
      return {{Attribute::HeuristicsGraph, Type::Descriptor}, {Attribute::HeuristicsMode, Type::HeuristicMode}};
    case CudnnDescriptorType::ExecutionPlan: return {{Attribute::PlanEngineConfig, Type::Descriptor}};
    case CudnnDescriptorType::PointwiseOperation:
      return {{Attribute::PointwiseOperationMode, Type::Descriptor},
              {Attribute::PointwiseOperationX, Type::Descriptor},
              {Attribute::PointwiseOperationY, Type::Descriptor}};
    case CudnnDescriptorType::OperationGraph:
      return {{Attribute::GraphHandle, Type::Handle}, {Attribute::GraphOperations, Type::Descriptor}};
    case CudnnDescriptorType::VariantPack:
      return {{Attribute::PackIds, Type::Int64},
              {Attribute::PackPointers, Type::VoidPointer},
              {Attribute::PackWorkspace, Type::VoidPointer}};
    case CudnnDescriptorType::Tensor:
      return {{Attribute::TensorDataType, Type::DataType},
              {Attribute::TensorDims, Type::Int64},
              {Attribute::TensorStrides, Type::Int64},
              {Attribute::TensorId, Type::Int64},
              {Attribute::TensorAlignment, Type::Int64}};
    case CudnnDescriptorType::Matmul: return {{Attribute::MatmulPrecision, Type::DataType}};
    case CudnnDescriptorType::MatmulOperation:
      return {{Attribute::MatmulOperationA, Type::Descriptor},
              {Attribute::MatmulOperationB, Type::Descriptor},
              {Attribute::MatmulOperationC, Type::Descriptor},
              {Attribute::MatmulOperationMatmul, Type::Descriptor}};
    case CudnnDescriptorType::Reduction:
      return {{Attribute::ReductionOperator, Type::ReductionOperator}, {Attribute::ReductionPrecision, Type::DataType}};
    case CudnnDescriptorType::ReductionOperation:
      return {{Attribute::ReductionOperationX, Type::Descriptor},
              {Attribute::ReductionOperationY, Type::Descriptor},
              {Attribute::ReductionOperationReduction, Type::Descriptor}};
    case CudnnDescriptorType::ReshapeOperation:
      return {{Attribute::ReshapeOperationX, Type::Descriptor}, {Attribute::ReshapeOperationY, Type::Descriptor}};
    case CudnnDescriptorType::EngineConfig: return {};
  }
  return {};
}

bool has(const Descriptor& descriptor, const Needed& needed) {
  const auto found = descriptor.attributes.find(needed.attribute);
  return found != descriptor.attributes.end() && found->second.type == needed.type && found->second.count > 0;
}

/// Numbers by batch entry, in memory.
bool isTable(const Descriptor& tensor, std::int64_t numbers, std::initializer_list<CudnnDataType> types) {
  return tensor.all<std::int64_t>(Attribute::TensorDims) == std::vector<std::int64_t>{numbers, 1, 1, 1} &&
         tensor.one<char>(Attribute::TensorIsVirtual) == 0 &&
         std::ranges::count(types, tensor.one<CudnnDataType>(Attribute::TensorDataType)) == 1;
}

bool isRagged(const Descriptor& tensor) { return tensor.attributes.contains(Attribute::TensorOffsets); }

constexpr Attribute kLengths[] = {Attribute::MatmulOperationRows, Attribute::MatmulOperationColumns,
                                  Attribute::MatmulOperationInner};

/// Tables of sequences as cudnn-frontend describes them: offsets in one of two integer formats, lengths in int32. No
/// graph has offsets without lengths.
bool areSequencesRight(const Descriptor& told) {
  const auto entriesOf = [](const Descriptor& tensor) { return tensor.all<std::int64_t>(Attribute::TensorDims)[0]; };
  if (told.type == CudnnDescriptorType::Tensor && isRagged(told))
    return isTable(told.other(Attribute::TensorOffsets), entriesOf(told) + 1,
                   {CudnnDataType::Int32, CudnnDataType::Int64});
  if (told.type != CudnnDescriptorType::MatmulOperation) return true;
  const auto operands = {Attribute::MatmulOperationA, Attribute::MatmulOperationB, Attribute::MatmulOperationC};
  const bool hasLengths = std::ranges::any_of(kLengths, [&](Attribute one) { return told.attributes.contains(one); });
  if (!hasLengths && std::ranges::any_of(operands, [&](Attribute one) { return isRagged(told.other(one)); }))
    return false;
  return std::ranges::all_of(kLengths, [&](Attribute one) {
    return !told.attributes.contains(one) ||
           isTable(told.other(one), entriesOf(told.other(Attribute::MatmulOperationC)), {CudnnDataType::Int32});
  });
}

// ---- From descriptors to a graph

GraphElement elementOf(CudnnDataType type) {
  switch (type) {
    case CudnnDataType::Half: return GraphElement::F16;
    case CudnnDataType::Bfloat16: return GraphElement::BF16;
    case CudnnDataType::Fp8E4m3: return GraphElement::E4M3;
    case CudnnDataType::Int32: return GraphElement::I32;
    case CudnnDataType::Int64: return GraphElement::I64;
    case CudnnDataType::Boolean: return GraphElement::Boolean;
    case CudnnDataType::Float: break;
  }
  return GraphElement::F32;
}

GraphOperator operatorOf(CudnnPointwise mode) {
  switch (mode) {
    case CudnnPointwise::Add: return GraphOperator::Add;
    case CudnnPointwise::Multiply: return GraphOperator::Multiply;
    case CudnnPointwise::Divide: return GraphOperator::Divide;
    case CudnnPointwise::Subtract: return GraphOperator::Subtract;
    case CudnnPointwise::Exponential: return GraphOperator::Exponential;
    case CudnnPointwise::Logarithm: return GraphOperator::Logarithm;
    case CudnnPointwise::Greater: return GraphOperator::Greater;
    case CudnnPointwise::GreaterOrEqual: return GraphOperator::GreaterOrEqual;
    case CudnnPointwise::Less: return GraphOperator::Less;
    case CudnnPointwise::And: return GraphOperator::And;
    case CudnnPointwise::Index: return GraphOperator::Index;
    case CudnnPointwise::Select: return GraphOperator::Select;
    case CudnnPointwise::Identity: break;
  }
  return GraphOperator::Identity;
}

GraphOperator operatorOf(CudnnReduction reduction) {
  switch (reduction) {
    case CudnnReduction::Max: return GraphOperator::Max;
    case CudnnReduction::LargestMagnitude: return GraphOperator::LargestMagnitude;
    case CudnnReduction::Add: break;
  }
  return GraphOperator::Sum;
}

/// A graph with the memory that a variant pack names, as it is when the plan is executed.
class ToldGraph {
 public:
  ToldGraph(const Descriptor& operations, const Descriptor& pack)
      : m_ids(pack.all<std::int64_t>(Attribute::PackIds)), m_pointers(pack.all<std::byte*>(Attribute::PackPointers)) {
    for (CudnnDescriptor operation : operations.all<CudnnDescriptor>(Attribute::GraphOperations))
      addStep(of(operation));
  }

  TensorGraph graph;
  std::vector<std::byte*> memory;

 private:
  int tensor(const Descriptor& told) {
    const auto id = told.one<std::int64_t>(Attribute::TensorId);
    if (const auto found = m_indices.find(id); found != m_indices.end()) return found->second;
    GraphTensor made{.element = elementOf(told.one<CudnnDataType>(Attribute::TensorDataType)),
                     .isVirtual = told.one<char>(Attribute::TensorIsVirtual) != 0};
    std::ranges::copy(told.all<std::int64_t>(Attribute::TensorDims), made.dims.begin());
    std::ranges::copy(told.all<std::int64_t>(Attribute::TensorStrides), made.strides.begin());
    if (told.attributes.contains(Attribute::TensorOffsets)) made.offsets = tensor(told.other(Attribute::TensorOffsets));
    std::byte* const data = made.isVirtual ? nullptr : pointerOf(id);
    if (told.one<char>(Attribute::TensorIsByValue) != 0) made.scalar = scalarAt(data, made.element);
    graph.tensors.push_back(made);
    memory.push_back(made.scalar ? nullptr : data);
    return m_indices[id] = static_cast<int>(graph.tensors.size()) - 1;
  }

  std::byte* pointerOf(std::int64_t id) const {
    const auto found = std::ranges::find(m_ids, id);
    return found == m_ids.end() ? nullptr : m_pointers.at(static_cast<std::size_t>(found - m_ids.begin()));
  }

  static std::variant<float, std::int32_t> scalarAt(const std::byte* data, GraphElement element) {
    if (element == GraphElement::F32) {
      float value = 0.0F;
      std::memcpy(&value, data, sizeof(value));
      return value;
    }
    std::int32_t value = 0;
    std::memcpy(&value, data, sizeof(value));
    return value;
  }

  void addStep(const Descriptor& told) {
    const auto at = [&](Attribute attribute) {
      return told.attributes.contains(attribute) ? tensor(told.other(attribute)) : -1;
    };
    switch (told.type) {
      case CudnnDescriptorType::MatmulOperation:
        graph.steps.push_back({.operation = GraphOperator::Matmul,
                               .x = at(Attribute::MatmulOperationA),
                               .b = at(Attribute::MatmulOperationB),
                               .y = at(Attribute::MatmulOperationC),
                               .rows = at(Attribute::MatmulOperationRows),
                               .columns = at(Attribute::MatmulOperationColumns),
                               .inner = at(Attribute::MatmulOperationInner)});
        break;
      case CudnnDescriptorType::ReductionOperation: {
        const Descriptor& reduction = told.other(Attribute::ReductionOperationReduction);
        graph.steps.push_back({.operation = operatorOf(reduction.one<CudnnReduction>(Attribute::ReductionOperator)),
                               .x = at(Attribute::ReductionOperationX),
                               .y = at(Attribute::ReductionOperationY)});
        break;
      }
      case CudnnDescriptorType::ReshapeOperation:
        graph.steps.push_back({.operation = GraphOperator::Reshape,
                               .x = at(Attribute::ReshapeOperationX),
                               .y = at(Attribute::ReshapeOperationY)});
        break;
      default: addPointwise(told, at);
    }
  }

  template <class At>
  void addPointwise(const Descriptor& told, const At& at) {
    const Descriptor& mode = told.other(Attribute::PointwiseOperationMode);
    const std::vector<std::int64_t> axis = mode.all<std::int64_t>(Attribute::PointwiseAxis);
    graph.steps.push_back({.operation = operatorOf(mode.one<CudnnPointwise>(Attribute::PointwiseMode)),
                           .x = at(Attribute::PointwiseOperationX),
                           .b = at(Attribute::PointwiseOperationB),
                           .t = at(Attribute::PointwiseOperationT),
                           .y = at(Attribute::PointwiseOperationY),
                           .axis = axis.empty() ? 0 : static_cast<int>(axis.front())});
  }

  std::vector<std::int64_t> m_ids;
  std::vector<std::byte*> m_pointers;
  std::map<std::int64_t, int> m_indices;
};

// ---- The library's functions

std::size_t version() { return 91900; }
const char* errorString(CudnnStatus) { return "CUDNN_STATUS_BAD_PARAM"; }
void lastError(char* message, std::size_t) { *message = 0; }
CudnnStatus create(CudnnHandle* handle) { return *handle = nullptr, kSuccess; }
CudnnStatus destroy(CudnnHandle) { return kSuccess; }

cuda::Stream stream = nullptr;
CudnnStatus setStream(CudnnHandle, cuda::Stream given) { return stream = given, kSuccess; }

CudnnStatus createDescriptor(CudnnDescriptorType type, CudnnDescriptor* made) {
  *made = new Descriptor{.type = type};
  return kSuccess;
}
CudnnStatus destroyDescriptor(CudnnDescriptor descriptor) {
  delete &of(descriptor);
  return kSuccess;
}

std::size_t bytesOf(Type type) {
  switch (type) {
    case Type::Boolean: return sizeof(bool);
    case Type::DataType:
    case Type::HeuristicMode:
    case Type::PointwiseMode:
    case Type::ReductionOperator: return sizeof(int);
    default: return sizeof(void*);
  }
}

CudnnStatus setAttribute(CudnnDescriptor descriptor, Attribute attribute, Type type, std::int64_t count,
                         const void* values) {
  if (of(descriptor).isFinal) return kBadParameter;
  const auto* const data = static_cast<const std::byte*>(values);
  of(descriptor).attributes[attribute] = {type, count, {data, data + static_cast<std::size_t>(count) * bytesOf(type)}};
  return kSuccess;
}

/// One engine for every graph.
CudnnStatus getAttribute(CudnnDescriptor descriptor, Attribute attribute, Type, std::int64_t wanted,
                         std::int64_t* count, void* values) {
  if (!of(descriptor).isFinal) return kBadParameter;
  *count = 1;
  if (attribute == Attribute::PlanWorkspaceBytes) {
    std::memcpy(values, &kWorkspaceBytes, sizeof(kWorkspaceBytes));
    return kSuccess;
  }
  if (attribute != Attribute::HeuristicsResults) return kBadParameter;
  if (wanted == 0) return kSuccess;
  Descriptor& config = of(*static_cast<CudnnDescriptor*>(values));
  config.attributes[Attribute::HeuristicsGraph] = of(descriptor).attributes.at(Attribute::HeuristicsGraph);
  return kSuccess;
}

CudnnStatus finalize(CudnnDescriptor descriptor) {
  Descriptor& told = of(descriptor);
  for (const Needed& needed : neededBy(told))
    if (!has(told, needed)) return kBadParameter;
  for (const auto& [attribute, value] : told.attributes)
    if (value.type == Type::Descriptor)
      for (CudnnDescriptor other : told.all<CudnnDescriptor>(attribute))
        if (!of(other).isFinal && of(other).type != CudnnDescriptorType::EngineConfig) return kBadParameter;
  if (!areSequencesRight(told)) return kBadParameter;
  told.isFinal = true;
  return kSuccess;
}

CudnnStatus execute(CudnnHandle, CudnnDescriptor plan, CudnnDescriptor pack) {
  const Descriptor& config = of(plan).other(Attribute::PlanEngineConfig);
  auto* const workspace = of(pack).one<std::byte*>(Attribute::PackWorkspace);
  const ToldGraph told(config.other(Attribute::HeuristicsGraph), of(pack));
  submit(stream, [told, workspace] {
    std::memset(workspace, 0xff, static_cast<std::size_t>(kWorkspaceBytes));  // it is the plan's own
    testing::runGraph(told.graph, told.memory);
  });
  return kSuccess;
}

}  // namespace

}  // namespace fuseline::host_gpu

namespace fuseline::cuda {

Result<Cudnn> loadCudnn() {
  using namespace host_gpu;
  return Cudnn{.version = version,
               .errorString = errorString,
               .lastError = lastError,
               .create = create,
               .destroy = destroy,
               .setStream = setStream,
               .createDescriptor = createDescriptor,
               .destroyDescriptor = destroyDescriptor,
               .setAttribute = setAttribute,
               .getAttribute = getAttribute,
               .finalize = finalize,
               .execute = execute};
}

}  // namespace fuseline::cuda
