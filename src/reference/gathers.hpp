#pragma once

#include "reference/call.hpp"

// Operators that move elements; views among them copy, but for reshape.
namespace stof::reference {

Array reshape(const Call& call);
Array transpose(const Call& call);
Array slice(const Call& call);
Array broadcast(const Call& call);
Array concat(const Call& call);
Array embedding(const Call& call);
Array patches(const Call& call);

}  // namespace stof::reference
