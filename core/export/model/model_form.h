// ModelForm: a transformer as its architecture describes it. Architectures fill it in; model_pipeline.h makes it a
// pipeline.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/support/json.h"
#include "core/tensor/dtype.h"
#include "core/tensor/tensor_spec.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fuseline {

/// Stands for the number of an expert in the names of its tensors.
inline constexpr std::string_view kExpertMark = "{e}";

/// A parameter of the pipeline, in tensors of the model's files. "{}" in either name is the number of the layer.
struct WeightSource {
  enum class Order {
    AsStored,
    Transposed,     // [.., in, out] for [.., out, in]
    HeadsTogether,  // [heads, 3, D, ...] for [3, heads, D, ...]
    Experts,        // a tensor an expert, "{e}" in the names, for one tensor of all experts
    PairsApart,     // [E, in, 2 F] with gate and up side by side for [E, 2 F, in], first all gates; or a bias [E, 2 F]
  };
  enum class Layers { All, Dense, OfExperts };
  std::string parameter;             // "layer{}.qkv.weight"
  std::vector<std::string> tensors;  // joined along the first axis, in this order
  Order order = Order::AsStored;
  Layers layers = Layers::All;
  std::string together = {};  // with Order::Experts: the tensor of all experts, which other files have instead
  std::vector<std::int64_t> rows = {};  // of each tensor; empty: all have as many
  Shape shape = {};  // of each tensor, where the files have the elements of the parameter in another shape
  /// Row of the only tensor, which has `shape`, at which the parameter begins: other parameters have other rows of it.
  std::optional<std::int64_t> first = {};
};

/// Layers that are instances of one block. Those of a model differ in no more than this.
struct LayerKind {
  std::string block;                   // "Layer"
  std::optional<std::int64_t> window;  // keys that a query sees, its own included
  Json rope;                           // attributes of RotaryPositionEmbedding; null: there is none
  bool isDense = false;                // in a model with experts: a layer with one MLP for all tokens
};

/// MLPs of which a router chooses some for each token.
struct ExpertsForm {
  std::int64_t count = 1;  // E
  std::int64_t topk = 1;
  std::int64_t intermediate = 1;
  Json router = Json::object();  // attributes of TopKRouter other than topk
  bool hasRouterBias = false;
  bool hasBias = false;
  std::int64_t sharedIntermediate = 0;  // of one more MLP for all tokens; 0: there is none
  bool hasSharedGate = true;            // its result is multiplied by the sigmoid of a gate
  double auxLossCoeff = 0.0;            // of the load-balancing loss, as MoEAuxLoss counts it; 0: there is none
};

/// Multi-head latent attention: queries and keys have a plain part, and a rotated one, which is the same in the keys of
/// all heads.
struct LatentForm {
  std::int64_t queryRank = 0;  // 0: queries are projected at once
  std::int64_t keyRank = 1;    // of the projection that keys and values share
  std::int64_t plainChannels = 1;
  std::int64_t rotatedChannels = 2;
  std::int64_t valueChannels = 1;
  bool hasBias = false;
};

/// Patches of an image in place of tokens.
struct ImageForm {
  std::int64_t patchElements = 1;  // channels * rows * columns
  std::int64_t classTokens = 0;    // learned tokens before the patches
  std::int64_t classes = 0;        // 0: there is no classifier
  bool hasPoolingHead = false;     // a learned probe attends to the patches
};

/// Where norms and residuals are.
enum class LayerOrder {
  PreNorm,   // x + f(norm(x))
  PostNorm,  // norm(x + f(x))
  Sandwich,  // x + norm(f(norm(x)))
  Parallel,  // x + attention(norm(x)) + mlp(norm2(x))
};

struct NormForm {
  std::string op = "RMSNorm";  // or LayerNorm
  double eps = 1e-6;
  bool isZeroCentered = false;
};

/// The ops after the last norm.
enum class ModelHead { None, Linear, Tied, MaskedLanguage, Classifier };

struct ModelForm {
  DType dtype = DType::BF16;
  std::int64_t tokens = 2048;  // S, to begin with
  std::int64_t hidden = 1;
  std::int64_t intermediate = 1;
  std::int64_t heads = 1;
  std::int64_t groups = 1;
  std::int64_t headDim = 1;
  std::int64_t vocabulary = 0;  // 0: images have none

  std::vector<LayerKind> kinds = {{.block = "Layer"}};
  std::vector<std::size_t> layers;  // index of the kind of each layer
  LayerOrder order = LayerOrder::PreNorm;
  NormForm norm;
  bool isCausal = true;
  bool hasQkvBias = false;
  bool hasProjectionBias = false;
  bool hasMlpBias = false;
  bool hasQkNorm = false;
  std::optional<double> softmaxScale;
  double attentionSoftcap = 0.0;
  bool hasSinks = false;  // a learnable term in the softmax of each head
  std::optional<ExpertsForm> experts;
  std::optional<LatentForm> latent;
  std::optional<ImageForm> image;
  std::string activation = "SwiGLU";
  Json activationAttributes = Json::object();

  double embeddingScale = 1.0;
  std::int64_t positions = 0;   // rows of a learned position embedding
  std::int64_t tokenTypes = 0;  // rows of a token type embedding
  bool hasEmbeddingNorm = false;
  bool hasFinalNorm = true;
  ModelHead head = ModelHead::Linear;
  double logitSoftcap = 0.0;

  std::vector<WeightSource> weights;
  std::vector<std::string> notes;

  bool isGated() const { return activation.ends_with("GLU"); }
  bool hasExperts(const LayerKind& kind) const { return experts && !kind.isDense; }
};

}  // namespace fuseline
