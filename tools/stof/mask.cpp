// stof mask: what a mask is made of, in numbers and pictures.
#include <memory>
#include <optional>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/files.hpp"
#include "command.hpp"
#include "io/npy.hpp"
#include "io/png.hpp"
#include "io/svg.hpp"
#include "mask/features.hpp"
#include "mask/parse.hpp"
#include "mask/picture.hpp"
#include "mask/signature.hpp"

namespace stof::command {

namespace {

constexpr const char* kMaskExamples = R"help(Examples:
  stof mask causal --length 4096
  stof mask "longformer(64, 32) && !strided(7)" --length 2048 --png mask.png
  stof mask "k_pos <= q_pos || k_pos < 4" --q-len 128 --kv-len 1024 --json
  stof mask keep.npy --svg mask.svg --cell 64

An array is bool or uint8, [q_len, kv_len] or [batch or 1, heads or 1, q_len, kv_len]. In a picture
queries go downwards and keys to the right: blue is seen in tiles of 64 x 64 that are seen whole,
orange in others; pale orange is hidden in those, grey in tiles that are skipped.
)help";

struct MaskOptions {
  std::string mask;
  std::optional<std::int64_t> length, q_len, kv_len;
  mask::Extent extent;  // but for the lengths
  std::string png, svg;
  std::int64_t plane = 0;
  std::int64_t cell = 0;
  bool is_json = false;
};

struct Chosen {
  Mask mask;
  mask::Extent extent;
};

Chosen choose(const MaskOptions& options) {
  mask::Extent extent = options.extent;
  const std::optional<std::int64_t> given_q = options.q_len ? options.q_len : options.length;
  const std::optional<std::int64_t> given_kv = options.kv_len ? options.kv_len : options.length;
  if (options.mask.ends_with(".npy")) {
    HostTensor keep = io::read_npy(options.mask);
    const std::vector<std::int64_t> shape = keep.shape();
    Mask mask = Mask::dense(keep.view());
    const auto [q_len, kv_len] = *mask.lengths();
    if (shape.size() == 4) {
      extent.batch = std::max(extent.batch, shape[0]);
      extent.heads = std::max(extent.heads, shape[1]);
    }
    extent.q_len = given_q.value_or(q_len);
    extent.kv_len = given_kv.value_or(kv_len);
    return {std::move(mask), extent};
  }
  if (!given_q || !given_kv) {
    throw CLI::RequiredError("mask: --length, or --q-len and --kv-len,");
  }
  extent.q_len = *given_q;
  extent.kv_len = *given_kv;
  return {mask::parse_mask(options.mask), extent};
}

void draw(const MaskOptions& options, const mask::MaskLayout& layout, const std::string& text) {
  constexpr std::int64_t kPngPixels = 1024, kSvgPixels = 256;
  const auto picture = [&](std::int64_t max_pixels) {
    const std::int64_t cell =
        options.cell != 0 ? options.cell : mask::cell_for(layout.extent, max_pixels);
    return mask::draw(layout, options.plane, cell);
  };
  if (!options.png.empty()) {
    io::write_png(options.png, picture(kPngPixels));
  }
  if (!options.svg.empty()) {
    const base::Image image = picture(kSvgPixels);
    const int scale = std::max(1, 512 / std::max(image.width, image.height));
    base::write_file_atomically(options.svg, io::svg_text(image, scale, text));
  }
}

nlohmann::ordered_json to_json(const Chosen& chosen, const mask::MaskFeatures& features) {
  const mask::Extent& extent = chosen.extent;
  return {{"text", chosen.mask.text()},
          {"digest", chosen.mask.digest()},
          {"extent",
           {{"batch", extent.batch},
            {"heads", extent.heads},
            {"q_len", extent.q_len},
            {"kv_len", extent.kv_len}}},
          {"planes", features.mask_batch * features.mask_heads},
          {"class", mask::name(features.mask_class)},
          {"density", features.density},
          {"tiles", features.tiles},
          {"full_tiles", features.full_tiles},
          {"part_tiles", features.part_tiles},
          {"empty_tiles", features.tiles - features.full_tiles - features.part_tiles},
          {"distinct_bitmaps", features.distinct_bitmaps},
          {"longest_tile_row", features.longest_tile_row},
          {"keys_per_row",
           {{"mean", features.mean_keys},
            {"min", features.min_keys},
            {"median", features.median_keys},
            {"p90", features.percentile_90_keys},
            {"p99", features.percentile_99_keys},
            {"max", features.max_keys}}},
          {"empty_rows", features.empty_rows},
          {"signature", mask::signature_of(chosen.mask, features).digest()}};
}

std::string to_text(const Chosen& chosen, const mask::MaskFeatures& f) {
  const auto share = [&](std::int64_t tiles) {
    return fmt::format("{} ({:.1f} %)", tiles,
                       100 * static_cast<double>(tiles) / static_cast<double>(f.tiles));
  };
  return fmt::format(
      "mask      {}\n"
      "digest    {}\n"
      "extent    q_len {}, kv_len {}, planes {}\n"
      "class     {}\n"
      "density   {:.4f}\n"
      "tiles     {} of 64 x 64: full {}, part {}, empty {}\n"
      "bitmaps   {} distinct\n"
      "keys      mean {:.1f}, min {}, median {}, p90 {}, p99 {}, max {}; rows without any {}\n",
      chosen.mask.text(), chosen.mask.digest(), chosen.extent.q_len, chosen.extent.kv_len,
      f.mask_batch * f.mask_heads, mask::name(f.mask_class), f.density, f.tiles,
      share(f.full_tiles), share(f.part_tiles), share(f.tiles - f.full_tiles - f.part_tiles),
      f.distinct_bitmaps, f.mean_keys, f.min_keys, f.median_keys, f.percentile_90_keys,
      f.percentile_99_keys, f.max_keys, f.empty_rows);
}

void show_mask(const MaskOptions& options) {
  const Chosen chosen = choose(options);
  const mask::MaskLayout layout = mask::build_layout(chosen.mask, chosen.extent);
  const mask::MaskFeatures features = mask::measure(chosen.mask, layout);
  draw(options, layout, chosen.mask.text());
  print(options.is_json ? to_json(chosen, features).dump(2) : to_text(chosen, features));
}

}  // namespace

void add_mask(CLI::App& stof) {
  auto options = std::make_shared<MaskOptions>();
  CLI::App* app = stof.add_subcommand("mask", "Measure and draw a mask");
  app->add_option("MASK", options->mask,
                  "An expression in which ready-made masks may stand, or an array in FILE.npy")
      ->required();
  app->add_option("--length", options->length, "q_len and kv_len, where these are not given");
  app->add_option("--q-len", options->q_len, "Queries");
  app->add_option("--kv-len", options->kv_len, "Keys");
  app->add_option("--batch", options->extent.batch, "Batch elements")->capture_default_str();
  app->add_option("--heads", options->extent.heads, "Heads")->capture_default_str();
  const auto add_picture = [app](const char* option, std::string& file, std::string_view ending) {
    app->add_option(option, file, "Draw it")
        ->type_name(fmt::format("FILE{}", ending))
        ->check([ending](const std::string& name) {
          return name.ends_with(ending) ? "" : fmt::format("'{}' does not end in {}", name, ending);
        });
  };
  add_picture("--png", options->png, ".png");
  add_picture("--svg", options->svg, ".svg");
  app->add_option("--cell", options->cell,
                  "Pairs that a side of a pixel stands for, a power of two; 64 draws the tiles");
  const CLI::Option* const plane =
      app->add_option("--plane", options->plane, "Which one to draw: batch element * heads + head")
          ->capture_default_str();
  app->add_flag("--json", options->is_json, "For programs");
  app->footer(
      fmt::format("{}\nReady-made: {}", kMaskExamples, fmt::join(mask::ready_made_masks(), ", ")));
  app->callback([options, plane] {
    if (*plane && options->png.empty() && options->svg.empty()) {
      throw CLI::RequiresError("--plane", "--png or --svg");
    }
    show_mask(*options);
  });
}

}  // namespace stof::command
