// Which kernel for windows with global tokens, on an H200 that is not there.
#include "fusion/global_token_rules.hpp"

#include <cstdint>
#include <string>

#include <doctest/doctest.h>

#include "fusion/choice_testing.hpp"
#include "stof/stof.hpp"

using namespace stof;  // NOLINT(google-build-using-namespace)
using namespace stof::testing;

TEST_CASE("windows with global tokens have an SM for each block where these are few") {
  const std::string resident = "attention_resident_sm90";
  for (const char* const mask : {"longformer", "bigbird"}) {
    CHECK(kernel_of(attention(mask, 12, 1024, 64)) == resident);
    CHECK(kernel_of(attention(mask, 24, 1024, 64)) != resident);
    CHECK(kernel_of(attention(mask, 12, 4096, 64)) != resident);
    CHECK(kernel_of(attention(mask, 12, 1024, 128)) != resident);
    CHECK(kernel_of(attention(mask, 12, 128, 64)) != resident);
  }
}

TEST_CASE("windows with global tokens go to the kernel for them where they are long and many") {
  const std::string global_local = "attention_global_local_sm90";
  for (const char* const mask : {"longformer", "bigbird"}) {
    for (const std::int64_t length : {2048, 4096}) {
      CHECK(kernel_of(attention(mask, 192, length, 64)) == global_local);
    }
    CHECK(kernel_of(attention(mask, 12, 4096, 64)) != global_local);
    CHECK(kernel_of(attention(mask, 192, 512, 64)) == "attention_packed_sm90");
    CHECK(kernel_of(attention(mask, 192, 4096, 136)) != global_local);
    CHECK(kernel_of(attention(mask, 192, 4096, 64, 5.0 * tanh(score() / 5.0))) != global_local);
  }
  CHECK(kernel_of(attention("longformer", 48, 16384, 64)) != global_local);  // 320 keys at once
  CHECK(kernel_of(attention("bigbird_block", 192, 4096, 64)) != global_local);
}

TEST_CASE("a walk is worth while with fewer query tiles where global queries are one tile") {
  const std::string global_local = "attention_global_local_sm90";
  CHECK(kernel_of(attention("longformer", 96, 1024, 64)) == global_local);  // 64 global queries
  CHECK(kernel_of(attention("bigbird", 96, 1024, 64)) == global_local);
  CHECK(kernel_of(attention("bigbird", 48, 2048, 64)) == global_local);
  CHECK(kernel_of(attention("longformer", 48, 2048, 64)) != global_local);  // 90 of them
  CHECK(kernel_of(attention("longformer", 72, 2048, 64)) == global_local);
  CHECK(kernel_of(attention("bigbird", 60, 1024, 64)) != global_local);
  CHECK(kernel_of(attention("bigbird", 24, 4096, 64)) != global_local);  // heads of 64 tiles
  CHECK(kernel_of(attention("bigbird", 36, 4096, 64)) == global_local);
}

TEST_CASE("wide heads are worth a walk with fewer query tiles, where shared memory holds them") {
  const std::string global_local = "attention_global_local_sm90";
  for (const std::int64_t head_dim : {72, 96, 128}) {
    CHECK(kernel_of(attention("longformer", 48, 1024, head_dim)) == global_local);  // 768 tiles
    CHECK(kernel_of(attention("longformer", 36, 1024, head_dim)) != global_local);
    CHECK(kernel_of(attention("bigbird", 24, 2048, head_dim)) == global_local);
    CHECK(kernel_of(attention("bigbird", 12, 4096, head_dim)) != global_local);  // of 64 each
    CHECK(kernel_of(attention("bigbird", 16, 4096, head_dim)) == global_local);
    CHECK(kernel_of(attention("longformer", 192, 4096, head_dim)) != global_local);  // 128 keys
  }
  // Registers hold the outputs of two tiles of global queries up to 96 dimensions.
  CHECK(kernel_of(attention("longformer", 64, 2048, 96)) == global_local);
  CHECK(kernel_of(attention("longformer", 64, 2048, 128)) != global_local);
  CHECK(kernel_of(attention("longformer", 48, 2048, 96)) != global_local);
}

TEST_CASE("clusters lie in a GPC, and not all SMs may have a block") {
  // Of 132 SMs 128 hold clusters of four.
  const std::string resident = "attention_resident_sm90";
  CHECK(kernel_of(attention("longformer", 10, 1024, 64)) == resident);
  CHECK(kernel_of(attention("longformer", 12, 1024, 64)) == resident);  // in blocks of three tiles
  CHECK(kernel_of(attention("longformer", 13, 1024, 64)) != resident);
  // Lists are slower there, whatever the model says of so little work.
  CHECK(kernel_of(attention("longformer", 5, 1024, 64)) == resident);
  CHECK(kernel_of(attention("longformer", 12, 512, 64)) == resident);
  CHECK(kernel_of(attention("bigbird", 4, 1024, 64)) == resident);
}
