#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/infer.hpp"
#include "graph/ir.hpp"

// How a graph grows. Each call throws GraphError and leaves the graph as it was where something
// does not fit.
namespace stof::graph {

// Adds an input or weight, or a result that an operator is yet to be given; its id.
int append_value(Ir& ir, Value value);

// Adds an operator that reads values of the graph; the ids of its results, as many as op.outputs
// has entries. They take the given names, else those of their operator and a number.
std::vector<int> append(Ir& ir, Operator op, std::span<const std::string> names = {});
// The same where there is one result.
int append_one(Ir& ir, Operator op);

void append_output(Ir& ir, const std::string& name, int value);

// Throws GraphError where the graph has no output.
void check_complete(const Ir& ir);

// Makes the symbols of an extent known to the graph, where one name has one range.
void declare_dims(Ir& ir, std::string_view what, const Shape& shape);

// Throws GraphError, which calls the thing by `what`, unless the name is 1 to 256 printable ASCII
// characters.
void check_name(std::string_view what, std::string_view name);

// The id of a value, -1 where none has the name.
int find_value(const Ir& ir, std::string_view name);

}  // namespace stof::graph
