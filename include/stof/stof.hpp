#pragma once

#include "stof/dtype.hpp"
#include "stof/engine.hpp"
#include "stof/error.hpp"
#include "stof/expr.hpp"
#include "stof/graph.hpp"
#include "stof/mask.hpp"
#include "stof/options.hpp"
#include "stof/precision.hpp"
#include "stof/tensor.hpp"
