#include "expr/operation.hpp"

#include <array>
#include <cstddef>

namespace stof::expr {

namespace {

constexpr auto kInfo = std::to_array<OpInfo>({
    {"literal", kPrimaryPrecedence, 0, Signature::Leaf},
    {"scalar", kPrimaryPrecedence, 0, Signature::Leaf},
    {"table", kPrimaryPrecedence, 0, Signature::Leaf},
    {"capture", kPrimaryPrecedence, 0, Signature::Leaf},
    {"-", kUnaryPrecedence, 1, Signature::Number},
    {"!", kUnaryPrecedence, 1, Signature::Truth},
    {"~", kUnaryPrecedence, 1, Signature::Integer},
    {"+", 10, 2, Signature::Numbers},
    {"-", 10, 2, Signature::Numbers},
    {"*", 11, 2, Signature::Numbers},
    {"/", 11, 2, Signature::Numbers},
    {"%", 11, 2, Signature::Integers},
    {"==", 7, 2, Signature::Equality},
    {"!=", 7, 2, Signature::Equality},
    {"<", 8, 2, Signature::Order},
    {"<=", 8, 2, Signature::Order},
    {">", 8, 2, Signature::Order},
    {">=", 8, 2, Signature::Order},
    {"&&", 3, 2, Signature::Truths},
    {"||", 2, 2, Signature::Truths},
    {"&", 6, 2, Signature::Bits},
    {"|", 4, 2, Signature::Bits},
    {"^", 5, 2, Signature::Bits},
    {"<<", 9, 2, Signature::Integers},
    {">>", 9, 2, Signature::Integers},
    {">>>", 9, 2, Signature::Integers},
    {"?:", kTernaryPrecedence, 3, Signature::Choice},
    {"min", kPrimaryPrecedence, 2, Signature::Numbers},
    {"max", kPrimaryPrecedence, 2, Signature::Numbers},
    {"abs", kPrimaryPrecedence, 1, Signature::Number},
    {"ceil_div", kPrimaryPrecedence, 2, Signature::Integers},
    {"float", kPrimaryPrecedence, 1, Signature::Convert},
    {"int", kPrimaryPrecedence, 1, Signature::Convert},
    {"exp", kPrimaryPrecedence, 1, Signature::Float},
    {"log", kPrimaryPrecedence, 1, Signature::Float},
    {"sqrt", kPrimaryPrecedence, 1, Signature::Float},
    {"tanh", kPrimaryPrecedence, 1, Signature::Float},
    {"hash", kPrimaryPrecedence, 3, Signature::HashedIntegers},
    {"draw", kPrimaryPrecedence, 4, Signature::HashedIntegers},
    {"keep", kPrimaryPrecedence, 4, Signature::HashedFraction},
    {"mix", kPrimaryPrecedence, 1, Signature::Leaf},
});
static_assert(kInfo.size() == static_cast<std::size_t>(Op::Mix) + 1);

}  // namespace

const OpInfo& info(Op op) {
  return kInfo[static_cast<std::size_t>(op)];
}

}  // namespace stof::expr
