// Tensors and steps as descriptors, and the plan of the first engine that takes them.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/attention/cudnn_graphs.h"

#include "kernels/cuda/attention/cudnn.h"
#include "kernels/cuda/stream/launch_count.h"
#include "kernels/cuda/support/check.h"

#include <array>
#include <deque>
#include <mutex>
#include <utility>

#include <fmt/format.h>

namespace fuseline::cuda {

namespace {

/// Older ones want zeros in the workspace of gradients, and 9.10.0, 9.10.1 and 9.14.0 are refused by NVIDIA's own
/// cudnn-frontend and TransformerEngine for attention.
constexpr std::size_t kOldestVersion = 91100;
constexpr std::size_t kFaultyVersion = 91400;
constexpr std::int64_t kAlignment = 16;

std::string versionText(std::size_t version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

/// The library, opened, and a handle of it.
class CudnnSession {
 public:
  /// Throws DeviceFault.
  CudnnSession(const Cudnn& library, Stream stream) : m_library(library) {
    check(library.create(&m_handle), "start");
    check(library.setStream(m_handle, stream), "take a stream");
  }
  ~CudnnSession() { m_library.destroy(m_handle); }
  CudnnSession(const CudnnSession&) = delete;
  CudnnSession& operator=(const CudnnSession&) = delete;

  const Cudnn& library() const { return m_library; }
  CudnnHandle handle() const { return m_handle; }
  void check(CudnnStatus status, std::string_view action) const {
    if (status == 0) return;
    const std::string details = lastError();
    throw DeviceFault(fmt::format("cuDNN {} could not {}: {}{}", versionText(m_library.version()), action,
                                  m_library.errorString(status), details.empty() ? "" : " (" + details + ")"));
  }

 private:
  /// The first line of the library's own words.
  std::string lastError() const {
    std::array<char, 256> message{};
    m_library.lastError(message.data(), message.size());
    const std::string_view all(message.data());
    return std::string(all.substr(0, all.find('\n')));
  }

  Cudnn m_library;
  CudnnHandle m_handle = nullptr;
};

/// A descriptor with an owner.
class Descriptor {
 public:
  Descriptor(const CudnnSession& session, CudnnDescriptorType type) : m_session(&session) {
    session.check(session.library().createDescriptor(type, &m_descriptor), "make a descriptor");
  }
  ~Descriptor() {
    if (m_descriptor) m_session->library().destroyDescriptor(m_descriptor);
  }
  Descriptor(Descriptor&& other) noexcept
      : m_session(other.m_session), m_descriptor(std::exchange(other.m_descriptor, nullptr)) {}
  Descriptor& operator=(Descriptor&&) = delete;

  CudnnDescriptor get() const { return m_descriptor; }

  void set(CudnnAttribute attribute, CudnnType type, std::int64_t count, const void* values) {
    m_session->check(m_session->library().setAttribute(m_descriptor, attribute, type, count, values),
                     "describe attention");
  }
  template <class T>
  void set(CudnnAttribute attribute, CudnnType type, const T& value) {
    set(attribute, type, 1, &value);
  }
  void set(CudnnAttribute attribute, const Descriptor& other) {
    set(attribute, CudnnType::Descriptor, other.m_descriptor);
  }
  void finalize(std::string_view action) { m_session->check(m_session->library().finalize(m_descriptor), action); }
  bool isFinalized() { return m_session->library().finalize(m_descriptor) == 0; }

 private:
  const CudnnSession* m_session;
  CudnnDescriptor m_descriptor = nullptr;
};

CudnnDataType typeOf(GraphElement element) {
  switch (element) {
    case GraphElement::F16: return CudnnDataType::Half;
    case GraphElement::BF16: return CudnnDataType::Bfloat16;
    case GraphElement::E4M3: return CudnnDataType::Fp8E4m3;
    case GraphElement::I32: return CudnnDataType::Int32;
    case GraphElement::I64: return CudnnDataType::Int64;
    case GraphElement::Boolean: return CudnnDataType::Boolean;
    case GraphElement::F32: break;
  }
  return CudnnDataType::Float;
}

CudnnPointwise modeOf(GraphOperator operation) {
  switch (operation) {
    case GraphOperator::Add: return CudnnPointwise::Add;
    case GraphOperator::Subtract: return CudnnPointwise::Subtract;
    case GraphOperator::Multiply: return CudnnPointwise::Multiply;
    case GraphOperator::Divide: return CudnnPointwise::Divide;
    case GraphOperator::GreaterOrEqual: return CudnnPointwise::GreaterOrEqual;
    case GraphOperator::Greater: return CudnnPointwise::Greater;
    case GraphOperator::Less: return CudnnPointwise::Less;
    case GraphOperator::And: return CudnnPointwise::And;
    case GraphOperator::Exponential: return CudnnPointwise::Exponential;
    case GraphOperator::Logarithm: return CudnnPointwise::Logarithm;
    case GraphOperator::Index: return CudnnPointwise::Index;
    case GraphOperator::Select: return CudnnPointwise::Select;
    default: return CudnnPointwise::Identity;
  }
}

std::int64_t idOf(int tensor) { return tensor + 1; }

/// The operation graph of a graph, with all that it is made of.
class GraphDescriptors {
 public:
  GraphDescriptors(const CudnnSession& session, const TensorGraph& graph) : m_session(session) {
    for (std::size_t i = 0; i < graph.tensors.size(); ++i) addTensor(graph.tensors[i], idOf(static_cast<int>(i)));
    for (const GraphStep& step : graph.steps) addStep(step);
  }

  Descriptor operationGraph() const {
    std::vector<CudnnDescriptor> operations;
    for (const Descriptor& operation : m_operations) operations.push_back(operation.get());
    Descriptor graph(m_session, CudnnDescriptorType::OperationGraph);
    graph.set(CudnnAttribute::GraphHandle, CudnnType::Handle, m_session.handle());
    graph.set(CudnnAttribute::GraphOperations, CudnnType::Descriptor, static_cast<std::int64_t>(operations.size()),
              operations.data());
    graph.finalize("join the operations of attention");
    return graph;
  }

 private:
  void addTensor(const GraphTensor& tensor, std::int64_t id) {
    Descriptor& made = m_tensors.emplace_back(m_session, CudnnDescriptorType::Tensor);
    made.set(CudnnAttribute::TensorDataType, CudnnType::DataType, typeOf(tensor.element));
    made.set(CudnnAttribute::TensorDims, CudnnType::Int64, std::ssize(tensor.dims), tensor.dims.data());
    made.set(CudnnAttribute::TensorStrides, CudnnType::Int64, std::ssize(tensor.strides), tensor.strides.data());
    made.set(CudnnAttribute::TensorId, CudnnType::Int64, id);
    made.set(CudnnAttribute::TensorAlignment, CudnnType::Int64, kAlignment);
    made.set(CudnnAttribute::TensorIsVirtual, CudnnType::Boolean, tensor.isVirtual);
    made.set(CudnnAttribute::TensorIsByValue, CudnnType::Boolean, tensor.scalar.has_value());
    if (tensor.offsets >= 0) made.set(CudnnAttribute::TensorOffsets, this->tensor(tensor.offsets));
    made.finalize("describe a tensor of attention");
  }

  const Descriptor& tensor(int index) const { return m_tensors.at(static_cast<std::size_t>(index)); }

  void addStep(const GraphStep& step) {
    switch (step.operation) {
      case GraphOperator::Matmul: return addMatmul(step);
      case GraphOperator::Max: return addReduction(step, CudnnReduction::Max);
      case GraphOperator::Sum: return addReduction(step, CudnnReduction::Add);
      case GraphOperator::LargestMagnitude: return addReduction(step, CudnnReduction::LargestMagnitude);
      case GraphOperator::Reshape: return addReshape(step);
      default: return addPointwise(step);
    }
  }

  void addMatmul(const GraphStep& step) {
    Descriptor& matmul = m_parts.emplace_back(m_session, CudnnDescriptorType::Matmul);
    matmul.set(CudnnAttribute::MatmulPrecision, CudnnType::DataType, typeOf(step.compute));
    matmul.finalize("describe a GEMM of attention");
    Descriptor& made = m_operations.emplace_back(m_session, CudnnDescriptorType::MatmulOperation);
    made.set(CudnnAttribute::MatmulOperationA, tensor(step.x));
    made.set(CudnnAttribute::MatmulOperationB, tensor(step.b));
    made.set(CudnnAttribute::MatmulOperationC, tensor(step.y));
    made.set(CudnnAttribute::MatmulOperationMatmul, matmul);
    if (step.rows >= 0) made.set(CudnnAttribute::MatmulOperationRows, tensor(step.rows));
    if (step.columns >= 0) made.set(CudnnAttribute::MatmulOperationColumns, tensor(step.columns));
    if (step.inner >= 0) made.set(CudnnAttribute::MatmulOperationInner, tensor(step.inner));
    made.finalize("describe a GEMM of attention");
  }

  void addReduction(const GraphStep& step, CudnnReduction operation) {
    Descriptor& reduction = m_parts.emplace_back(m_session, CudnnDescriptorType::Reduction);
    reduction.set(CudnnAttribute::ReductionOperator, CudnnType::ReductionOperator, operation);
    reduction.set(CudnnAttribute::ReductionPrecision, CudnnType::DataType, typeOf(step.compute));
    reduction.finalize("describe a reduction of attention");
    Descriptor& made = m_operations.emplace_back(m_session, CudnnDescriptorType::ReductionOperation);
    made.set(CudnnAttribute::ReductionOperationX, tensor(step.x));
    made.set(CudnnAttribute::ReductionOperationY, tensor(step.y));
    made.set(CudnnAttribute::ReductionOperationReduction, reduction);
    made.finalize("describe a reduction of attention");
  }

  void addReshape(const GraphStep& step) {
    Descriptor& made = m_operations.emplace_back(m_session, CudnnDescriptorType::ReshapeOperation);
    made.set(CudnnAttribute::ReshapeOperationX, tensor(step.x));
    made.set(CudnnAttribute::ReshapeOperationY, tensor(step.y));
    made.finalize("describe a transposition of attention");
  }

  void addPointwise(const GraphStep& step) {
    Descriptor& pointwise = m_parts.emplace_back(m_session, CudnnDescriptorType::Pointwise);
    pointwise.set(CudnnAttribute::PointwiseMode, CudnnType::PointwiseMode, modeOf(step.operation));
    pointwise.set(CudnnAttribute::PointwisePrecision, CudnnType::DataType, typeOf(step.compute));
    if (step.operation == GraphOperator::Index)
      pointwise.set(CudnnAttribute::PointwiseAxis, CudnnType::Int64, std::int64_t{step.axis});
    pointwise.finalize("describe a function of attention");
    Descriptor& made = m_operations.emplace_back(m_session, CudnnDescriptorType::PointwiseOperation);
    made.set(CudnnAttribute::PointwiseOperationMode, pointwise);
    made.set(CudnnAttribute::PointwiseOperationX, tensor(step.x));
    if (step.b >= 0) made.set(CudnnAttribute::PointwiseOperationB, tensor(step.b));
    if (step.t >= 0) made.set(CudnnAttribute::PointwiseOperationT, tensor(step.t));
    made.set(CudnnAttribute::PointwiseOperationY, tensor(step.y));
    made.finalize("describe a function of attention");
  }

  const CudnnSession& m_session;
  std::deque<Descriptor> m_tensors;
  std::deque<Descriptor> m_parts;
  std::deque<Descriptor> m_operations;
};

/// Engines for the graph, the fastest by the library's own estimate first.
std::deque<Descriptor> engineConfigs(const CudnnSession& session, const Descriptor& graph) {
  Descriptor heuristics(session, CudnnDescriptorType::EngineHeuristics);
  heuristics.set(CudnnAttribute::HeuristicsGraph, graph);
  heuristics.set(CudnnAttribute::HeuristicsMode, CudnnType::HeuristicMode, CudnnHeuristics::A);
  heuristics.finalize("find an engine for attention");
  const auto get = [&](std::int64_t wanted, std::int64_t& count, void* values) {
    session.check(session.library().getAttribute(heuristics.get(), CudnnAttribute::HeuristicsResults,
                                                 CudnnType::Descriptor, wanted, &count, values),
                  "name an engine for attention");
  };
  std::int64_t count = 0;
  get(0, count, nullptr);
  std::deque<Descriptor> configs;
  std::vector<CudnnDescriptor> wanted;
  for (std::int64_t i = 0; i < count; ++i)
    wanted.push_back(configs.emplace_back(session, CudnnDescriptorType::EngineConfig).get());
  if (count > 0) get(count, count, wanted.data());
  while (std::ssize(configs) > count) configs.pop_back();
  return configs;
}

/// A plan, and what must live as long.
class CudnnGraph final : public PreparedGraph {
 public:
  /// Throws DeviceFault.
  CudnnGraph(std::shared_ptr<CudnnSession> session, const TensorGraph& graph)
      : m_session(std::move(session)),
        m_graph(graph),
        m_descriptors(*m_session, m_graph),
        m_operations(m_descriptors.operationGraph()),
        m_configs(engineConfigs(*m_session, m_operations)) {
    for (const Descriptor& config : m_configs)
      if (plan(config)) return;
    m_session->check(kNotSupported, "find an engine for this attention");
  }

  std::size_t workspaceBytes() const override { return static_cast<std::size_t>(m_workspaceBytes); }

  void run(std::span<std::byte* const> tensors, std::byte* workspace) override {
    std::vector<std::int64_t> ids;
    std::vector<const void*> pointers;
    for (std::size_t i = 0; i < m_graph.tensors.size(); ++i) {
      const GraphTensor& tensor = m_graph.tensors[i];
      if (tensor.isVirtual) continue;
      ids.push_back(idOf(static_cast<int>(i)));
      pointers.push_back(tensor.scalar ? addressOf(*tensor.scalar) : tensors[i]);
    }
    Descriptor pack(*m_session, CudnnDescriptorType::VariantPack);
    pack.set(CudnnAttribute::PackIds, CudnnType::Int64, std::ssize(ids), ids.data());
    pack.set(CudnnAttribute::PackPointers, CudnnType::VoidPointer, std::ssize(pointers), pointers.data());
    pack.set(CudnnAttribute::PackWorkspace, CudnnType::VoidPointer, workspace);
    pack.finalize("use the tensors of attention");
    m_session->check(m_session->library().execute(m_session->handle(), m_plan->get(), pack.get()), "run attention");
    ++numLaunched;
  }

 private:
  static constexpr CudnnStatus kNotSupported = 3000;  // CUDNN_STATUS_NOT_SUPPORTED

  static const void* addressOf(const std::variant<float, std::int32_t>& scalar) {
    return std::visit([](const auto& value) -> const void* { return &value; }, scalar);
  }

  bool plan(const Descriptor& config) {
    Descriptor candidate(*m_session, CudnnDescriptorType::ExecutionPlan);
    candidate.set(CudnnAttribute::PlanHandle, CudnnType::Handle, m_session->handle());
    candidate.set(CudnnAttribute::PlanEngineConfig, config);
    if (!candidate.isFinalized()) return false;
    std::int64_t count = 0;
    m_session->check(m_session->library().getAttribute(candidate.get(), CudnnAttribute::PlanWorkspaceBytes,
                                                       CudnnType::Int64, 1, &count, &m_workspaceBytes),
                     "report the workspace of attention");
    m_plan.emplace(std::move(candidate));
    return true;
  }

  std::shared_ptr<CudnnSession> m_session;
  TensorGraph m_graph;
  GraphDescriptors m_descriptors;
  Descriptor m_operations;
  std::deque<Descriptor> m_configs;
  std::optional<Descriptor> m_plan;
  std::int64_t m_workspaceBytes = 0;
};

class CudnnGraphs final : public GraphLibrary {
 public:
  explicit CudnnGraphs(Stream stream) : m_stream(stream) {}

  Result<std::unique_ptr<PreparedGraph>> prepare(const TensorGraph& graph) override {
    const std::lock_guard lock(m_mutex);
    try {
      if (Result<void> started = start(); !started) return started.error();
      if (const std::size_t version = m_session->library().version(); version < graph.oldestVersion)
        return Error{fmt::format("cuDNN is of version {}; this attention needs {} or newer", versionText(version),
                                 versionText(graph.oldestVersion))};
      return std::unique_ptr<PreparedGraph>(std::make_unique<CudnnGraph>(m_session, graph));
    } catch (const DeviceFault& refusal) {
      return Error{refusal.what(), ErrorKind::RunFailed};
    }
  }

 private:
  Result<void> start() {
    if (m_session) return {};
    const Result<Cudnn> library = loadCudnn();
    if (!library) return library.error();
    if (const std::size_t version = library->version(); version < kOldestVersion || version == kFaultyVersion)
      return Error{fmt::format("cuDNN is of version {}; install {} or newer, but not {}", versionText(version),
                               versionText(kOldestVersion), versionText(kFaultyVersion))};
    m_session = std::make_shared<CudnnSession>(*library, m_stream);
    return {};
  }

  Stream m_stream;
  std::mutex m_mutex;
  std::shared_ptr<CudnnSession> m_session;
};

}  // namespace

std::unique_ptr<GraphLibrary> makeCudnnGraphs(Stream stream) { return std::make_unique<CudnnGraphs>(stream); }

}  // namespace fuseline::cuda
