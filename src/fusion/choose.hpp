#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "cost/model.hpp"
#include "fusion/attention.hpp"
#include "fusion/chain.hpp"
#include "fusion/decisions.hpp"
#include "fusion/use.hpp"

namespace stof::fusion {

// One way to run a group.
struct Option {
  std::string kernel;  // the contract's name
  kernel::KernelConfig config;
  cost::Prediction time;

  // "gemm_sm90, stages 4, tile_m 128: 12.3 us: launch 0.8, …"
  std::string text() const;
};

// A way to run a group, and what was not chosen.
struct Choice {
  std::size_t use = 0;          // the one to take, by its place
  kernel::KernelConfig config;  // of it
  cost::LongTiles long_tiles;   // of an attention, where the kernel can work on them in parts
  cost::Sections sections;      // of an attention
  std::vector<Option> options;  // that one first, then others, the fastest first
};

// The most that a choice lists, the fastest by the model.
inline constexpr std::size_t kMostListed = 256;

// Chooses kernels and settings by the cost model, the same for equal problems, which are looked at
// once.
class Chooser {
 public:
  // With `lists_all` a choice lists every setting of every template that is allowed.
  explicit Chooser(const base::DeviceProfile& device, bool lists_all = false)
      : model_(device), lists_all_(lists_all) {}

  // Of several ways to run a group the one that should take the least time. Of those that are as
  // good, where it is no attention, the template with more constraints, which is made for the case,
  // and of those that are equal the first. Nothing (null)
  // where the restrictions allow no setting of any of them. A template of which the model knows no
  // settings comes with its default, or the allowed setting nearest to that. `mask` is that of an
  // attention. What is returned lives as long as this object.
  const Choice* choose(const std::vector<Use>& uses, const Chain& chain, const graph::Ir& ir,
                       const AttentionMask* mask);

  // `choice` of these uses, but for the setting that is taken. Where none of them takes it, that
  // choice, and `refusal` says why.
  Choice forced(const Setting& setting, const Choice& choice, const std::vector<Use>& uses,
                const Chain& chain, const graph::Ir& ir, const AttentionMask* mask,
                std::string& refusal);

 private:
  using TilesOfMask =
      std::map<std::tuple<std::shared_ptr<MaskArrays>, std::int64_t, std::int64_t, bool>,
               cost::TileWork>;

  std::vector<Option> options(const Use& use, const cost::Epilogue& epilogue,
                              const AttentionMask* mask);
  cost::Prediction predict(const cost::Problem& problem, const kernel::KernelConfig& config,
                           const AttentionMask* mask);
  const cost::TileWork& tile_work(const contract::TemplateContract& contract,
                                  const kernel::KernelConfig& config, const AttentionMask& mask);
  // How the setting of a use goes through an attention.
  void add_order(Choice& choice, const Use& use, const AttentionMask& mask);
  // Those that it is to work on in parts.
  cost::LongTiles long_tiles(const contract::TemplateContract& contract,
                             const contract::ContractScope& scope,
                             const kernel::KernelConfig& config, const AttentionMask& mask);

  // Puts what is allowed and not yet listed behind the one that is taken, by its time.
  void list_all(Choice& choice, const std::vector<Use>& uses, const cost::Epilogue& epilogue,
                const AttentionMask* mask);

  cost::Model model_;
  bool lists_all_;
  TilesOfMask tile_work_;
  // By everything that a choice depends on: the arrays of the mask and all else.
  std::map<std::pair<std::shared_ptr<MaskArrays>, std::string>, Choice> known_;
};

}  // namespace stof::fusion
