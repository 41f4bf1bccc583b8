#include "search_lab.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/gpu_target.hpp"
#include "cuda/read_device_profile.hpp"
#include "engine/gpu_layouts.hpp"
#include "fusion/joined_products.hpp"
#include "fusion/lower.hpp"
#include "fusion/rotated_products.hpp"
#include "graph/normalise.hpp"

namespace stof::bench {

namespace {

std::unique_ptr<cache::TuningStore> no_records() {
  return std::make_unique<cache::TuningStore>(std::nullopt, false, cache::Warn(), cache::Warn());
}

std::map<std::string, tune::Setting> winners_of(const engine::Tuned& tuned) {
  std::map<std::string, tune::Setting> winners;
  for (const engine::TunedSegment& segment : tuned.segments) {
    winners.emplace(segment.problem, segment.setting);
  }
  return winners;
}

void take(Found& found, const engine::Tuned& tuned) {
  found.decisions = tuned.decisions();
  found.winners = winners_of(tuned);
  found.timed = tuned.timed;
  found.recalled = tuned.recalled;
  found.failed = tuned.failed;
  found.ended = tuned.ended;
  found.plan_us = tuned.plan_us.value_or(0);
  found.none_us = tuned.plan_before_us.value_or(0);
}

void take(Found& found, const tune::SearchResult& result, const tune::Trials& trials) {
  found.decisions = {.scheme = result.scheme, .settings = {}, .lists_all = false};
  for (const tune::Decision& decision : result.decisions) {
    found.winners.emplace(decision.part.problem, decision.setting);
    if (decision.time_us) {
      found.decisions.settings.emplace(
          decision.part.problem,
          fusion::Setting{.kernel = decision.setting.kernel, .config = decision.setting.config});
    }
  }
  found.timed = trials.timed();
  found.recalled = trials.recalled();
  found.failed = trials.failed();
  found.ended = tune::name(result.end);
}

}  // namespace

void CompileClock::see(const jit::Event& event) {
  if (std::holds_alternative<jit::CompileBeginEvent>(event.what)) {
    begin_s_ = running_++ == 0 ? tune::steady_seconds() : begin_s_;
  } else if (std::holds_alternative<jit::CompileEndEvent>(event.what)) {
    ++compiled_;
    seconds_ += --running_ == 0 ? tune::steady_seconds() - begin_s_ : 0;
  }
}

SearchLab::SearchLab(KernelShop& shop, const Graph& graph)
    : kernels_(shop),
      shop_(shop.work),
      build_layout_(
          fusion::remembering([device = shop.device](const auto& mask, const auto& extent) {
            return engine::build_layout(device, mask, extent);
          })),
      ir_(fusion::rotate_products_if_faster(
              {.ir = fusion::join_products_if_faster(graph::normalise_but_attention(graph.ir()),
                                                     shop_.templates, shop_.profile, build_layout_)
                         .ir},
              shop_.templates, shop_.profile, build_layout_)
              .ir) {}

std::string SearchLab::compiler_build() const {
  return shop_.compiler
      .inputs({.source = {}, .target = base::parse_gpu_target(shop_.profile.target)})
      .compiler;
}

engine::TunerTools SearchLab::tuner_tools(cache::TuningStore& store) const {
  return {.device = kernels_.device,
          .profile = &shop_.profile,
          .templates = &shop_.templates,
          .templates_digest = shop_.renderer.store().digest(),
          .jit = &shop_.template_jit,
          .compiler = [this] { return compiler_build(); },
          .store = &store,
          .build_layout = build_layout_,
          .report = [](const Event&) {}};
}

engine::TrialTools SearchLab::trial_tools() const {
  return {.device = kernels_.device,
          .profile = &shop_.profile,
          .jit = &shop_.template_jit,
          .compiler = compiler_build(),
          .stop = {},
          .tell = [](const std::string&, const std::string&) {}};
}

Found SearchLab::timed(const std::string& how, const std::function<void(Found&)>& run) {
  const double start = tune::steady_seconds();
  const CompileClock before = kernels_.clock;
  Found found;
  found.how = how;
  run(found);
  found.compiled = kernels_.clock.compiled() - before.compiled();
  found.compile_s = kernels_.clock.seconds() - before.seconds();
  found.whole_s = tune::steady_seconds() - start;
  return found;
}

Found SearchLab::tune(const std::string& how) {
  return timed(how, [this](Found& found) {
    auto store = no_records();
    const engine::Tuner tuner(tuner_tools(*store));
    take(found, tuner.tune(ir_, {.level = Tuning::Full, .seconds = 0, .stop = {}}));
    if (!store_) {
      store_ = std::move(store);
    }
  });
}

Found SearchLab::tune_again() {
  return timed("again", [this](Found& found) {
    if (const auto tuned = engine::Tuner(tuner_tools(*store_)).find(ir_)) {
      take(found, *tuned);
    }
    shop_.template_jit.get_or_compile(lower(found).specs,
                                      base::parse_gpu_target(shop_.profile.target));
  });
}

SearchLab::Searched::Searched(const SearchLab& lab)
    : space(lab.ir_, lab.shop_.templates, lab.shop_.profile, lab.build_layout_),
      records(*lab.store_),
      runner(lab.trial_tools(), space, records) {}

Found SearchLab::search(const std::string& how, double max_seconds, const Search& run) {
  return timed(how, [&](Found& found) {
    if (!searched_) {
      searched_ = std::make_unique<Searched>(*this);
    }
    tune::Space schemes = searched_->space.space();
    tune::Trials trials(
        [&](std::span<const tune::Trial> batch) { return searched_->runner.measure(batch); },
        [&](const tune::Trial& trial) { return searched_->runner.recall(trial); },
        {.max_seconds = max_seconds});
    take(found, run(schemes, trials), trials);
  });
}

fusion::Lowered SearchLab::lower(const Found& found) const {
  return fusion::lower(ir_, shop_.templates, shop_.profile, build_layout_, found.decisions);
}

std::vector<double> SearchLab::time_plans(const std::vector<Found>& found,
                                          double max_seconds) const {
  std::vector<fusion::Lowered> plans;
  plans.reserve(found.size());
  for (const Found& one : found) {
    plans.push_back(lower(one));
  }
  const engine::TuningSpace space(ir_, shop_.templates, shop_.profile, build_layout_);
  const auto store = no_records();
  tune::Records records(*store);
  return engine::TrialRunner(trial_tools(), space, records)
      .time_plans(ir_, plans, tune::steady_seconds() + max_seconds);
}

double SearchLab::render_ms(const Found& found) const {
  const fusion::Lowered plan = lower(found);
  const double start = tune::steady_seconds();
  for (const kernel::KernelSpec& spec : plan.specs) {
    shop_.renderer.render(spec.file, render::from_json(spec.variables));
  }
  return 1e3 * (tune::steady_seconds() - start) /
         static_cast<double>(std::max<std::size_t>(plan.specs.size(), 1));
}

std::vector<cache::TuningRecord> SearchLab::records() const {
  return store_ ? store_->all() : std::vector<cache::TuningRecord>();
}

void SearchLab::rest() {
  searched_.reset();
}

}  // namespace stof::bench
