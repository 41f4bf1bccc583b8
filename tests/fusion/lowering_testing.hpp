#pragma once

#include <algorithm>
#include <vector>

#include "base/device_profile.hpp"
#include "fusion/decisions.hpp"
#include "fusion/lower.hpp"
#include "fusion/template_library.hpp"
#include "graph/normalise.hpp"
#include "models/bert.hpp"
#include "models/gpt2.hpp"
#include "models/llama.hpp"
#include "models/t5.hpp"
#include "models/vit.hpp"
#include "render/template_store.hpp"
#include "stof/stof.hpp"

namespace stof::testing {

inline const fusion::TemplateLibrary& shipped_templates() {
  static const fusion::TemplateLibrary library =
      fusion::read_templates(render::TemplateStore::open({}).texts());
  return library;
}

// Lowered for a GPU that is not there.
inline fusion::Lowered lowered_by(const Graph& graph, const fusion::Decisions& decisions = {},
                                  const char* device = "h200") {
  return fusion::lower(graph::normalise_but_attention(graph.ir()), shipped_templates(),
                       base::shipped_profile(device), {}, decisions);
}

// Operators of a kind.
inline int count(const graph::Ir& ir, graph::OpKind kind) {
  return static_cast<int>(std::ranges::count(ir.operators, kind, &graph::Operator::kind));
}

// The six builders of examples/models, two layers each, at their full widths, with masks of every
// kind.
inline std::vector<Graph> six_models() {
  return {models::bert({.num_hidden_layers = 2},
                       {.batch = 2, .mask = sliding_window(16, 16), .key_padding = true}),
          models::gpt2({.n_layer = 2}, {.batch = 2}),
          models::llama({.num_hidden_layers = 2, .num_key_value_heads = 8}, {}),
          models::t5_encoder({.num_layers = 2}, {.batch = 2, .key_padding = true}),
          models::t5({.num_layers = 2, .num_decoder_layers = 2, .is_gated_act = true}, {}),
          models::vit({.num_hidden_layers = 2}, {.batch = 2})};
}

}  // namespace stof::testing
