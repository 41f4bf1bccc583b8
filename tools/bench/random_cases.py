"""Cases of attention drawn at random, to find shapes in which a peer is faster. Needs neither a GPU nor PyTorch."""

import random

import bench_results

LENGTHS = [64, 96, 128, 160, 192, 197, 224, 256, 257, 300, 320, 384, 400, 448, 512, 577, 640, 768, 900, 1024, 1025, 1280, 1500, 2048, 2304, 3000, 4096, 6000, 8192, 16384]
HEAD_DIMS = [64] * 6 + [128] * 6 + [32, 40, 48, 72, 80, 80, 88, 96, 96, 112, 160, 192, 256, 256]
HEADS = [1, 2, 4, 5, 6, 8, 10, 12, 14, 16, 20, 24, 25, 32, 40]
BATCHES = [1, 1, 1, 2, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64]
FEW_QUERIES = [1, 1, 1, 2, 4, 8, 16, 32, 33, 64, 100, 128, 200]
DENSE_MASKS = ["causal", "full"]
SPARSE_MASKS = ["sliding", "dilated", "longformer", "bigbird", "bigbird_block", "doc_causal", "window", "random1"]
MODEL_MASKS = ["prefix", "documents", "chunked", "sinks", "frames", "grid", "strided", "local"]
LONG_MASKS = ["bigbird_block", "window", "chunked", "sinks", "frames", "documents"]
SCORE_MASKS = ["causal", "full", "causal", "full", "sliding", "window", "longformer", "bigbird", "doc_causal", "prefix"]
# Those that arrive on each run, and the form.
ARRIVING_MASKS = ["causal:lengths", "full:lengths", "window:lengths", "doc_causal:offsets", "documents:offsets", "causal:bytes", "doc_causal:bytes", "prefix:bytes", "longformer:bytes", "random1:bytes", "bigbird_block:columns", "random1:columns"]
KINDS = {"dense": DENSE_MASKS, "sparse": SPARSE_MASKS, "models": MODEL_MASKS, "scores": SCORE_MASKS, "arriving": ARRIVING_MASKS}
MOST_FLOPS, MOST_BYTES, LEAST_ROWS = 4e11, 2e9, 512


def draw(source: random.Random, kind: str) -> str:
    masks = KINDS[kind]
    mask, batch, heads, length, head_dim = (source.choice(of) for of in (masks, BATCHES, HEADS, LENGTHS, HEAD_DIMS))
    mask, _, form = mask.partition(":")
    text = f"{mask}:{batch}:{heads}:{length}:{head_dim}"
    shared = source.choice([1, 1, 1, 2, 4, 8])
    if shared > 1 and heads % shared == 0:
        text += f":kv{heads // shared}"
    if mask == "full" and source.random() < 0.4:
        text += f":q{min(length, source.choice(FEW_QUERIES))}"
    text += ":bf16" if source.random() < 0.15 else ""
    text += f":{form}" if form else ""
    return text + (f":{source.choice(bench_results.SCORES)}" if kind == "scores" else "")


def fits(case: bench_results.AttentionCase) -> bool:
    """In time and memory, of PyTorch's masks too, and with work for more than a few SMs; masks of blocks and long windows want some of them."""
    flops = 4 * case.cost * (0.5 if case.mask == "causal" else 1)
    bytes_ = 4 * case.head_dim * case.batch * (case.heads * case.q_len + case.kv_heads * case.kv_len)
    if case.score == "bias":
        bytes_ += 2 * case.heads * case.q_len * case.kv_len
    if case.form:
        bytes_ += case.q_len * case.kv_len * (case.batch if case.form == "lengths" else 1)
    is_long = case.kv_len >= 1024 or case.mask not in LONG_MASKS
    return flops <= MOST_FLOPS and bytes_ <= MOST_BYTES and case.batch * case.heads * case.kv_len >= LEAST_ROWS and is_long


def attention_cases(count: int, seed: int, kind: str) -> list[str]:
    """With masks of `kind`, of KINDS; of the kind "scores" with scores that are modified. The same for the same seed; no case twice."""
    source, cases = random.Random(seed), {}
    while len(cases) < count:
        text = draw(source, kind)
        if fits(bench_results.parse_attention_case(text)):
            cases[text] = None
    return list(cases)
