#include "stof/mask.hpp"

#include "expr/node.hpp"
#include "mask/node.hpp"

namespace stof {

namespace {

using mask::Combination;
using mask::Operation;

const Expr* expression_of(const Mask& mask) {
  return std::get_if<Expr>(&mask.node().form);
}

// The value of a mask that is the same for every pair.
std::optional<bool> constant(const Mask& mask) {
  const Expr* predicate = expression_of(mask);
  const auto value = predicate ? expr::literal(*predicate) : std::nullopt;
  return value ? std::optional(std::get<bool>(*value)) : std::nullopt;
}

}  // namespace

Expr batch_index() {
  return Expr::scalar("batch");
}
Expr head_index() {
  return Expr::scalar("head");
}
Expr query_position() {
  return Expr::scalar("q_pos");
}
Expr key_position() {
  return Expr::scalar("k_pos");
}
Expr query_length() {
  return Expr::scalar("q_len");
}
Expr key_length() {
  return Expr::scalar("kv_len");
}
Expr score() {
  return Expr::scalar("score", ScalarType::Float);
}

ExprNames mask_names() {
  return {.scalars = {{"batch", ScalarType::Int},
                      {"head", ScalarType::Int},
                      {"q_pos", ScalarType::Int},
                      {"k_pos", ScalarType::Int},
                      {"q_len", ScalarType::Int},
                      {"kv_len", ScalarType::Int}},
          .tables = {},
          .captures = {}};
}

ExprNames score_names() {
  ExprNames names = mask_names();
  names.scalars.emplace("score", ScalarType::Float);
  return names;
}

Mask::Mask() : Mask(Expr(true)) {}

Mask::Mask(Expr predicate) : Mask(mask::make_mask(std::move(predicate))) {}

const std::string& Mask::digest() const {
  return node_->digest;
}
std::string Mask::text() const {
  return mask::text_of(*node_);
}
bool Mask::is_full() const {
  return constant(*this) == true;
}
bool Mask::is_expression() const {
  return expression_of(*this) != nullptr;
}
bool Mask::uses_batch() const {
  return node_->uses_batch;
}
bool Mask::uses_head() const {
  return node_->uses_head;
}
bool Mask::has_captures() const {
  return node_->has_captures;
}

std::optional<std::pair<std::int64_t, std::int64_t>> Mask::lengths() const {
  return node_->data.lengths;
}

Mask operator&&(const Mask& a, const Mask& b) {
  if (const auto value = constant(a)) {
    return *value ? b : a;
  }
  if (const auto value = constant(b)) {
    return *value ? a : b;
  }
  if (a.is_expression() && b.is_expression()) {
    return *expression_of(a) && *expression_of(b);
  }
  return mask::make_mask(Combination{.operation = Operation::And, .operands = {a, b}});
}

Mask operator||(const Mask& a, const Mask& b) {
  if (const auto value = constant(a)) {
    return *value ? a : b;
  }
  if (const auto value = constant(b)) {
    return *value ? b : a;
  }
  if (a.is_expression() && b.is_expression()) {
    return *expression_of(a) || *expression_of(b);
  }
  return mask::make_mask(Combination{.operation = Operation::Or, .operands = {a, b}});
}

Mask operator!(const Mask& a) {
  if (const auto value = constant(a)) {
    return !*value;
  }
  if (a.is_expression()) {
    return !*expression_of(a);
  }
  return mask::make_mask(Combination{.operation = Operation::Not, .operands = {a}});
}

Mask operator&(const Mask& a, const Mask& b) {
  return a && b;
}
Mask operator|(const Mask& a, const Mask& b) {
  return a || b;
}
Mask operator~(const Mask& a) {
  return !a;
}

}  // namespace stof
