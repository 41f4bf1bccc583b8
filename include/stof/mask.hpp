#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "stof/expr.hpp"
#include "stof/tensor.hpp"

namespace stof {

// The scalars that masks and scores may use, all integers but the score.
Expr batch_index();     // batch
Expr head_index();      // head: the query head
Expr query_position();  // q_pos, from 0
Expr key_position();    // k_pos, from 0
Expr query_length();    // q_len
Expr key_length();      // kv_len
Expr score();           // score: q·k times the scale, a float; only in scores

// These names, for parse_expression: all but the score for masks, all of them for scores. Tables
// and captures that the text reads are yours to add.
ExprNames mask_names();
ExprNames score_names();

// A score modifier: an expression of type Float over the scalars above. In kernels its divisions
// are products with a reciprocal, and tanh is good to 3e-6 of its value, but where an integer or a
// truth value is made of them.
using Score = Expr;

namespace mask {
struct Node;
}

// Which keys a query sees: an immutable value that shares its data and knows its digest. `&&`,
// `||`,
// `!` and `&`, `|`, `~` combine masks of any kind. A row that sees no key gives an output of 0;
// on a GPU a mask in which no row sees any is an error.
class Mask {
 public:
  Mask();                              // every query sees every key
  Mask(Expr predicate);                // NOLINT(google-explicit-constructor): a predicate is a mask
  Mask(bool all) : Mask(Expr(all)) {}  // NOLINT(google-explicit-constructor)

  // Bool or UInt8 (0 hides a key), [q_len, kv_len] or [batch or 1, heads or 1, q_len, kv_len], on
  // the host. Copies. Throws GraphError on another dtype or shape.
  static Mask dense(const TensorView& keep);
  // One bit a key, the lowest first, each row padded to a 64-bit word; batch-major rows. Bits of
  // the padding count for nothing.
  static Mask bits(std::span<const std::uint64_t> words, const Shape& shape);
  // Sorted, unique columns of each row; row_ptr has q_len + 1 entries.
  static Mask csr(std::span<const std::int32_t> row_ptr, std::span<const std::int32_t> col_idx,
                  std::int64_t kv_len);
  // keep is Bool or UInt8 [block rows, block columns], or with batch and heads before them; a block
  // is block_size x block_size keys, and the last ones may hang over the lengths.
  static Mask blocks(const TensorView& keep, int block_size, std::int64_t q_len,
                     std::int64_t kv_len);

  // 32 hexadecimal digits that name the mask: text and table data for expressions, bits for data.
  // Computed once. Bytes and bits of the same truth values have one digest; other forms (CSR,
  // blocks, an expression) of what they see have others.
  const std::string& digest() const;
  // The expression text, or the form and shape of data: "dense[128, 128] & k_pos <= q_pos".
  std::string text() const;

  bool is_full() const;        // every query sees every key, whatever the lengths
  bool is_expression() const;  // no part of it is data
  bool uses_batch() const;     // differs between batch elements
  bool uses_head() const;
  bool has_captures() const;  // reads graph tensors at run time

  // {q_len, kv_len} where data fixes them.
  std::optional<std::pair<std::int64_t, std::int64_t>> lengths() const;

  const mask::Node& node() const { return *node_; }
  explicit Mask(std::shared_ptr<const mask::Node> node) : node_(std::move(node)) {}

 private:
  std::shared_ptr<const mask::Node> node_;
};

// Combinations of data and data, or data and expressions; two expressions combine as Expr. Throws
// GraphError where two data masks have other lengths.
Mask operator&&(const Mask& a, const Mask& b);
Mask operator||(const Mask& a, const Mask& b);
Mask operator!(const Mask& a);
Mask operator&(const Mask& a, const Mask& b);
Mask operator|(const Mask& a, const Mask& b);
Mask operator~(const Mask& a);

// Ready-made masks. Lengths and counts are in tokens; arguments out of range throw GraphError.
Mask causal();               // k_pos <= q_pos: top left corners meet
Mask causal_bottom_right();  // k_pos - (kv_len - q_len) <= q_pos: bottom right corners meet
Mask sliding_window(std::int64_t left, std::int64_t right);  // -left <= k_pos - q_pos <= right
// Every `dilation`-th key of a window that holds `left` and `right` of them to each side.
Mask dilated(std::int64_t left, std::int64_t right, std::int64_t dilation);
Mask strided(std::int64_t stride);       // (q_pos - k_pos) % stride == 0
Mask global_tokens(std::int64_t count);  // the first `count` queries see all keys, and all see them
Mask global_tokens(std::int64_t first, std::int64_t count);
Mask random_tokens(double fraction,
                   std::int64_t seed);  // each pair with the probability `fraction`
// Each row of blocks sees `per_row` blocks drawn at random, with repetition.
Mask random_blocks(std::int64_t block_size, std::int64_t per_row, std::int64_t seed);
// Beltagy et al., "Longformer", 2020: a window to each side and global tokens at the front.
Mask longformer(std::int64_t window, std::int64_t globals);
// Zaheer et al., "Big Bird", 2020: window, global and random blocks.
Mask bigbird(std::int64_t block_size, std::int64_t window_blocks, std::int64_t global_blocks,
             std::int64_t random_per_row, std::int64_t seed);
Mask prefix(std::int64_t length);  // causal, and every query sees the first `length` keys
// Packed documents: cu_seqlens holds their start offsets and the total length, which q_len and
// kv_len may not pass. A query sees the keys of its own document.
Mask documents(std::span<const std::int32_t> cu_seqlens);
Mask documents(std::initializer_list<std::int32_t> cu_seqlens);
// A question, then answers: cu_seqlens as for documents, the first of which is the question. Each
// token sees, causally, its own document and the question.
Mask share_question(std::span<const std::int32_t> cu_seqlens);
Mask block_causal(std::int64_t block_size);  // k_pos / block_size <= q_pos / block_size
// Tokens of a grid of `width` columns see those at most `radius` rows and columns away.
Mask window_2d(std::int64_t width, std::int64_t radius);
// k_pos < kv_lengths[batch]: a length for each batch element, or one for all.
Mask key_padding(std::span<const std::int64_t> kv_lengths);
// Keys whose entry of an integer or bool capture [batch, kv_len] is not 0.
Mask key_padding(const Capture& keep);

}  // namespace stof
