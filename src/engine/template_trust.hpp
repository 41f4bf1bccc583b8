#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/device_profile.hpp"
#include "base/hash.hpp"
#include "cache/cache.hpp"
#include "compile/compiler.hpp"
#include "fusion/template_library.hpp"
#include "render/template_store.hpp"
#include "stof/options.hpp"

namespace stof::engine {

// A template that does not ship with the library, or includes something that does not; or a part
// of a user's that is in quarantine.
struct ForeignTemplate {
  std::string file;
  bool is_used = true;        // false: it is in quarantine
  std::string detail;         // how far it got, or why it is not used
  bool is_validated = false;  // its numbers were checked on a GPU
};

struct TrustedTemplates {
  // Shipped templates in the place of those in quarantine that hide them.
  std::shared_ptr<const render::TemplateStore> store;
  fusion::TemplateLibrary library;  // without what is in quarantine
  std::vector<ForeignTemplate> foreign;
  base::Digest digest;  // of all texts, and of what is left out
};

struct TrustTools {
  cache::Cache* cache = nullptr;
  const compile::Compiler* compiler = nullptr;
  const base::DeviceProfile* profile = nullptr;
  std::optional<int> device;   // nothing: there is no GPU
  std::optional<Trust> trust;  // as EngineOptions::trust
  bool may_compile = true;
  std::stop_token stop;
  std::function<void(const Event&)> report;
};

// The templates of a store that may be used. Foreign ones of which the cache has no verdict climb
// the ladder (validate/check_template.hpp); of several with one name the first may be used, and a
// part with which a shipped template does not pass gives way to the shipped one. Throws
// TemplateError where a shipped contract is wrong, CudaError where there is no compiler,
// CancelledError.
TrustedTemplates trusted_templates(const TrustTools& tools,
                                   const std::shared_ptr<const render::TemplateStore>& store);

}  // namespace stof::engine
