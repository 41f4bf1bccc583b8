#pragma once

#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "contract/contract.hpp"
#include "stof/error.hpp"

namespace stof::contract {

// A full header: a residual added, then an RMS norm, and the sum written as well.
inline const char* const kFullHeader =
    R"json({ "contract": 1, "name": "rms_norm_residual", "version": 3, "summary": "y = rms_norm(x + r) * gain",
  "ports": { "x": {"shape": ["tokens", "hidden"], "dtype": "T"}, "r": {"like": "x"},
             "gain": {"shape": ["hidden"], "dtype": "T"},
             "sum": {"like": "x", "may_alias": "r"}, "y": {"like": "x"} },
  "pattern": ["sum = add(x, r)", "y = rms_norm(sum, gain; epsilon)"], "escapes": ["sum"],
  "dtypes": {"T": ["float16", "bfloat16"]}, "accumulate": "float32",
  "constraints": ["dim.hidden % 8 == 0", "dim.hidden <= 16384", "device.sm >= 80"],
  "params": { "threads_per_row": {"values": [32, 64, 128, 256], "default": 128},
              "rows_per_block": {"values": [1, 2, 4], "default": 1} },
  "restrictions": ["param.threads_per_row * param.rows_per_block <= 256"],
  "weights": [], "workspace": {"bytes": "4 * dim.tokens", "must_be_zero": true},
  "resources": { "threads": "param.threads_per_row * param.rows_per_block", "shared_bytes": "128", "registers": "64" },
  "launch": { "grid": ["ceil_div(dim.tokens, param.rows_per_block)"],
              "block": ["param.threads_per_row", "param.rows_per_block"], "pdl": true,
              "arguments": ["x", "r", "gain", "sum", "y", "workspace", "dim.tokens", "attr.epsilon"] },
  "cost": { "flops": "6 * dim.tokens * dim.hidden", "bytes": "4 * dim.tokens * dim.hidden * size.T" },
  "hooks": {"epilogue": "y"}, "deterministic": true,
  "tests": [{"tokens": 1, "hidden": 8}, {"tokens": 333, "hidden": 1000}] })json";

inline nlohmann::json full_header() {
  return nlohmann::json::parse(kFullHeader);
}

inline TemplateContract parse(const nlohmann::json& header) {
  return parse_contract("t.cu.jinja", "{# " + header.dump() + " #}\n");
}

// The first line of the error, without file, line and column.
inline std::string error_of(const nlohmann::json& header) {
  try {
    parse(header);
  } catch (const TemplateError& error) {
    const std::string text = error.what();
    const std::size_t begin = text.find(": ") + 2;
    return text.substr(begin, text.find('\n') - begin);
  }
  return "no error";
}

}  // namespace stof::contract
