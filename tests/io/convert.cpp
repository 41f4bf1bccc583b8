// Reads a file and writes what it read, for convert_test.py to look at from outside:
//   convert IN.npy OUT.npy
//   convert IN.safetensors OUT.safetensors
//   convert IN.safetensors OUT.npy TENSOR
#include <cstdio>
#include <string>
#include <vector>

#include "io/npy.hpp"
#include "io/safetensors.hpp"
#include "io/safetensors_writer.hpp"
#include "stof/error.hpp"

namespace {

void convert(const std::string& in, const std::string& out, const std::string& tensor) {
  using namespace stof;
  if (in.ends_with(".npy")) {
    io::write_npy(out, io::read_npy(in).view());
    return;
  }
  const io::SafetensorsFile file = io::SafetensorsFile::open(in);
  if (out.ends_with(".npy")) {
    io::write_npy(out, file.view(tensor));
    return;
  }
  std::vector<NamedTensor> tensors;
  for (const std::string& name : file.names()) {
    tensors.push_back({name, file.view(name)});
  }
  io::write_safetensors(out, tensors, file.metadata());
}

}  // namespace

int main(int argc, char** argv) {
  try {
    convert(argv[1], argv[2], argc > 3 ? argv[3] : "");
  } catch (const stof::GraphError& error) {
    std::puts(error.what());
    return 1;
  }
}
