#include "zoo.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "bert.hpp"
#include "gpt2.hpp"
#include "llama.hpp"
#include "t5.hpp"
#include "vit.hpp"

namespace models {

namespace {

struct Request {
  std::string_view name;
  Size size;
  stof::DType dtype;
  stof::Mask mask;

  std::int64_t layers(std::int64_t all) const {
    if (size.layers > all) {
      throw stof::GraphError("model: layers is " + std::to_string(size.layers) + ", " +
                             std::string(name) + " has " + std::to_string(all));
    }
    return size.layers == 0 ? all : size.layers;
  }
};

// What the options of every model for sequences have.
template <typename Options>
Options options_of(const Request& request) {
  return {.batch = request.size.batch,
          .sequence = request.size.sequence,
          .dtype = request.dtype,
          .mask = request.mask};
}

stof::Graph make(BertConfig config, const Request& request) {
  config.num_hidden_layers = request.layers(config.num_hidden_layers);
  config.max_position_embeddings = std::max(config.max_position_embeddings, request.size.sequence);
  return bert(config, options_of<BertOptions>(request));
}

stof::Graph make(Gpt2Config config, const Request& request) {
  config.n_layer = request.layers(config.n_layer);
  config.n_positions = std::max(config.n_positions, request.size.sequence);
  return gpt2(config, options_of<Gpt2Options>(request));
}

stof::Graph make(LlamaConfig config, const Request& request) {
  config.num_hidden_layers = request.layers(config.num_hidden_layers);
  return llama(config, options_of<LlamaOptions>(request));
}

stof::Graph make(T5Config config, const Request& request) {
  config.num_layers = request.layers(config.num_layers);
  return t5_encoder(config, options_of<T5Options>(request));
}

stof::Graph make(VitConfig config, const Request& request) {
  const std::int64_t patches = request.size.sequence - 1;
  const std::int64_t side = std::llround(std::sqrt(static_cast<double>(patches)));
  if (side < 1 || side * side != patches) {
    throw stof::GraphError("vit-base: " + std::to_string(request.size.sequence) +
                           " tokens are not a class token and a square of patches, such as 197");
  }
  config.num_hidden_layers = request.layers(config.num_hidden_layers);
  config.image_size = side * config.patch_size;
  return vit(config, {.batch = request.size.batch, .dtype = request.dtype, .mask = request.mask});
}

void check(std::string_view what, std::int64_t value, std::int64_t least) {
  if (value < least) {
    throw stof::GraphError("model: " + std::string(what) + " is " + std::to_string(value) +
                           ", at least " + std::to_string(least) + " is needed");
  }
}

}  // namespace

stof::Graph by_name(std::string_view name, const Size& size, stof::DType dtype,
                    const stof::Mask& mask) {
  check("batch", size.batch, 1);
  check("sequence", size.sequence, 1);
  check("layers", size.layers, 0);
  const Request request{.name = name, .size = size, .dtype = dtype, .mask = mask};
  if (name == "bert-base") {
    return make(kBertBase, request);
  }
  if (name == "bert-large") {
    return make(kBertLarge, request);
  }
  if (name == "gpt2") {
    return make(kGpt2, request);
  }
  if (name == "llama-7b") {
    return make(kLlama7B, request);
  }
  if (name == "t5-base") {
    return make(kT5Base, request);
  }
  if (name == "vit-base") {
    return make(kVitBase, request);
  }
  std::string known;
  for (const std::string_view each : kNames) {
    known += (known.empty() ? "" : ", ") + std::string(each);
  }
  throw stof::GraphError("model: none is called '" + std::string(name) + "', there is " + known);
}

}  // namespace models
