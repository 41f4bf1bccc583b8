#include <fmt/format.h>

#include "render/parser.hpp"

namespace stof::render {

Token TokenStream::take() {
  Token token = current();
  if (position_ + 1 < tokens_.size()) {
    ++position_;
  }
  return token;
}

bool TokenStream::skip_operator(std::string_view op) {
  const bool is_there = current().is_operator(op);
  if (is_there) {
    take();
  }
  return is_there;
}

bool TokenStream::skip_name(std::string_view name) {
  const bool is_there = current().is_name(name);
  if (is_there) {
    take();
  }
  return is_there;
}

Token TokenStream::expect(TokenKind kind, std::string_view what) {
  if (current().kind != kind) {
    fail(fmt::format("expected {}, got {}", what, describe(current())));
  }
  return take();
}

void TokenStream::expect_operator(std::string_view op) {
  if (!skip_operator(op)) {
    fail(fmt::format("expected '{}', got {}", op, describe(current())));
  }
}

void TokenStream::expect_name(std::string_view name) {
  if (!skip_name(name)) {
    fail(fmt::format("expected '{}', got {}", name, describe(current())));
  }
}

void TokenStream::fail(std::size_t offset, const std::string& message) const {
  throw source_.error(offset, message);
}

}  // namespace stof::render
