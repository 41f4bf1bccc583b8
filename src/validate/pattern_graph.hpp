#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "contract/contract.hpp"
#include "graph/ir.hpp"
#include "stof/mask.hpp"

namespace stof::validate {

// One way in which the operators that a template stands for may come.
struct PatternUse {
  std::map<std::string, std::int64_t> dims;
  std::map<std::string, DType> dtypes;       // of every symbol; those of results follow from inputs
  std::map<std::string, double> attributes;  // those to which the pattern gives no value
  std::set<std::size_t> absent_steps = {};   // optional ones, by place
  bool has_optional_ports = true;            // those of steps that are there
  bool is_strided = false;  // inputs whose strides the kernel is told are parts of larger tensors
  bool is_transposed = false;  // they lie with their last two axes swapped
  bool has_epilogue = false;   // two operators follow at the hook
  Mask mask = {};              // of an attention
};

// The pattern of a contract as a graph of primitive operators: ports are its inputs and outputs, by
// their names. Throws GraphError where the operators do not take such tensors.
graph::Ir pattern_graph(const contract::TemplateContract& contract, const PatternUse& use);

// Whether any input of the pattern may lie in memory otherwise than packed.
bool takes_strides(const contract::TemplateContract& contract, const contract::Port& port);

// The attributes of the pattern without a value, in order; each once.
std::vector<contract::PatternAttribute> free_attributes(const contract::TemplateContract& contract);

}  // namespace stof::validate
