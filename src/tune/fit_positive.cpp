#include "tune/fit_positive.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <utility>

#include "base/check.hpp"
#include "base/parallel.hpp"

namespace stof::tune {

namespace {

using Vector = std::vector<double>;
using Matrix = std::vector<Vector>;

constexpr double kFarOff = 0.1;  // of an error; beyond it an observation loses weight
constexpr double kStep = 0.01;   // of a difference quotient
constexpr double kLeastGain = 1e-5;

// Grows as the square of small errors and as the amount of large ones.
double loss(double error) {
  return 2 * kFarOff * kFarOff * (std::sqrt(1 + error * error / (kFarOff * kFarOff)) - 1);
}

double weight(double error) {
  return 1 / std::sqrt(1 + error * error / (kFarOff * kFarOff));
}

// The solution of a x = b for a symmetric positive definite a, by Cholesky's factors.
Vector solve(Matrix a, Vector b) {
  const std::size_t n = b.size();
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double rest = a[i][j];
      for (std::size_t k = 0; k < j; ++k) {
        rest -= a[i][k] * a[j][k];
      }
      a[i][j] = i == j ? std::sqrt(std::max(rest, 1e-300)) : rest / a[j][j];
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < i; ++k) {
      b[i] -= a[i][k] * b[k];
    }
    b[i] /= a[i][i];
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k) {
      b[i] -= a[k][i] * b[k];
    }
    b[i] /= a[i][i];
  }
  return b;
}

class Fit {
 public:
  Fit(const Vector& start, const LogErrors& errors, const FitOptions& options)
      : errors_(errors), options_(options), origin_(start.size()) {
    std::ranges::transform(start, origin_.begin(), [](double value) { return std::log(value); });
  }

  Vector run() {
    Vector at = origin_;
    Vector errors = errors_at(at);
    double cost = cost_of(at, errors);
    double damping = 0.01;
    for (int round = 0; round < options_.rounds; ++round) {
      const Equations equations = linearised(at, errors);
      bool is_better = false;
      double before = cost;
      for (int attempt = 0; attempt < 8 && !is_better; ++attempt) {
        const Vector next = moved(at, equations, damping);
        const Vector next_errors = errors_at(next);
        const double next_cost = cost_of(next, next_errors);
        is_better = next_cost < cost;
        if (is_better) {
          at = next;
          errors = next_errors;
          cost = next_cost;
        }
        damping = is_better ? std::max(damping / 4, 1e-6) : damping * 4;
      }
      if (cost > before * (1 - kLeastGain)) {
        break;
      }
    }
    std::ranges::transform(at, at.begin(), [](double value) { return std::exp(value); });
    return at;
  }

 private:
  struct Equations {  // of a step: matrix step = -gradient
    Matrix matrix;
    Vector gradient;
  };

  Vector errors_at(const Vector& logarithms) const {
    Vector values(logarithms.size());
    std::ranges::transform(logarithms, values.begin(),
                           [](double value) { return std::exp(value); });
    return errors_(values);
  }

  double cost_of(const Vector& at, const Vector& errors) const {
    const double sum = std::accumulate(errors.begin(), errors.end(), 0.0,
                                       [](double s, double error) { return s + loss(error); });
    double moves = 0;
    for (std::size_t i = 0; i < at.size(); ++i) {
      moves += (at[i] - origin_[i]) * (at[i] - origin_[i]);
    }
    return sum + prior(errors) * moves;
  }

  double prior(const Vector& errors) const {
    return options_.prior * static_cast<double>(errors.size());
  }

  Equations linearised(const Vector& at, const Vector& errors) const {
    const std::size_t n = at.size();
    Matrix slopes(n);
    base::parallel_for(std::ssize(at), [&](std::int64_t i) {
      const auto place = static_cast<std::size_t>(i);
      Vector beside = at;
      beside[place] += kStep;
      slopes[place] = errors_at(beside);
      for (std::size_t k = 0; k < errors.size(); ++k) {
        slopes[place][k] = (slopes[place][k] - errors[k]) / kStep;
      }
    });
    Equations equations{.matrix = Matrix(n, Vector(n)), .gradient = Vector(n)};
    for (std::size_t k = 0; k < errors.size(); ++k) {
      const double w = weight(errors[k]);
      for (std::size_t i = 0; i < n; ++i) {
        equations.gradient[i] += w * slopes[i][k] * errors[k];
        for (std::size_t j = 0; j <= i; ++j) {
          equations.matrix[i][j] += w * slopes[i][k] * slopes[j][k];
        }
      }
    }
    for (std::size_t i = 0; i < n; ++i) {
      equations.matrix[i][i] += prior(errors);
      equations.gradient[i] += prior(errors) * (at[i] - origin_[i]);
    }
    return equations;
  }

  Vector moved(const Vector& at, Equations equations, double damping) const {
    constexpr double kMostStep = 1;
    const double most = std::log(options_.most);
    for (std::size_t i = 0; i < at.size(); ++i) {
      equations.matrix[i][i] *= 1 + damping;
      equations.matrix[i][i] += 1e-12;
    }
    const Vector step = solve(std::move(equations.matrix), std::move(equations.gradient));
    Vector next = at;
    for (std::size_t i = 0; i < at.size(); ++i) {
      next[i] -= std::clamp(step[i], -kMostStep, kMostStep);
      next[i] = std::clamp(next[i], origin_[i] - most, origin_[i] + most);
    }
    return next;
  }

  const LogErrors& errors_;
  FitOptions options_;
  Vector origin_;
};

}  // namespace

std::vector<double> fit_positive(const std::vector<double>& values, const LogErrors& errors,
                                 const FitOptions& options) {
  for (const double value : values) {
    STOF_CHECK(value > 0) << "fit: a number is " << value;
  }
  return Fit(values, errors, options).run();
}

}  // namespace stof::tune
