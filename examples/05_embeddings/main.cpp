// The nearest neighbour of each line of a text, by the meaning that a sentence model gives it.
//
//   example MODEL TEXTS [EMBEDDINGS]
//
// MODEL is a folder with config.json, model.safetensors and vocab.txt; TEXTS a file of UTF-8 lines.
// EMBEDDINGS, where it is given, gets the vectors as float32, a row a line.
#include <cstddef>
#include <cstdio>
#include <exception>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "encoder.hpp"

namespace {

std::vector<std::string> read_lines(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    throw std::runtime_error("example: cannot open " + path);
  }
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    lines.push_back(line);
  }
  return lines;
}

void write_rows(const std::string& path, const std::vector<float>& rows) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(rows.data()),
             static_cast<std::streamsize>(rows.size() * sizeof(float)));
  if (!file.flush()) {
    throw std::runtime_error("example: cannot write " + path);
  }
}

void print_neighbours(const std::vector<std::string>& texts, const std::vector<float>& rows,
                      std::size_t width) {
  for (std::size_t i = 0; i < texts.size(); ++i) {
    std::size_t nearest = i;
    double best = -2;
    for (std::size_t j = 0; j < texts.size(); ++j) {
      double cosine = 0;
      for (std::size_t n = 0; n < width; ++n) {
        cosine += static_cast<double>(rows[i * width + n]) * rows[j * width + n];
      }
      if (j != i && cosine > best) {
        best = cosine;
        nearest = j;
      }
    }
    if (nearest != i) {
      std::printf("%.4f\t%s\t%s\n", best, texts[i].c_str(), texts[nearest].c_str());
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3 || argc > 4) {
    std::fprintf(stderr, "usage: %s MODEL TEXTS [EMBEDDINGS]\n", argv[0]);
    return 2;
  }
  try {
    const std::vector<std::string> texts = read_lines(argv[2]);
    embeddings::Encoder encoder(argv[1]);
    const std::vector<float> rows = encoder.embed(texts);
    if (argc == 4) {
      write_rows(argv[3], rows);
    }
    print_neighbours(texts, rows, static_cast<std::size_t>(encoder.width()));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
