#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "models/bert.hpp"
#include "tokenizer.hpp"
#include <stof/stof.hpp>

namespace embeddings {

// A sentence model from a folder with config.json, model.safetensors and vocab.txt, as
// sentence-transformers saves them: in float16 on a GPU where there is one, else in float32 on the
// CPU.
class Encoder {
 public:
  // Throws std::runtime_error, of which stof::Error is one.
  explicit Encoder(const std::filesystem::path& folder);

  std::int64_t width() const { return config_.hidden_size; }

  // `width` floats a text, row by row, each row of length 1: the mean over the text's tokens.
  std::vector<float> embed(std::span<const std::string> texts);

 private:
  using Tokens = std::vector<std::int32_t>;
  // What runs batches of one size: so many texts, each padded to so many tokens.
  struct Lane {
    stof::Buffer ids, lengths, shares, sentence;
    stof::Execution run;
  };

  Lane& lane(std::int64_t texts, std::int64_t tokens);
  std::vector<float> embed_batch(std::span<const Tokens* const> batch);

  models::BertConfig config_;
  Tokenizer tokenizer_;
  stof::Engine engine_;
  stof::Plan plan_;
  stof::Weights weights_;
  std::map<std::pair<std::int64_t, std::int64_t>, Lane> lanes_;
};

}  // namespace embeddings
