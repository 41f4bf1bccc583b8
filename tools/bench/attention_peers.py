"""What a user of PyTorch can reach for masked attention, as contenders."""

import math
import time
from typing import Callable

import torch
import torch._dynamo
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

import arriving_masks
from bench_results import AttentionCase
from bench_timing import Contender
from peers import masks

MOST_DENSE_KEYS = 8192
FIXED_FORMS = ["", "offsets"]  # of masks that a flag, a window or offsets say
FORMULA_FORMS = ["", "offsets", "lengths"]
NOT_ADDED = ["softcap"]  # scores that no mask of numbers modifies so
# Keys to the left and to the right that FlashAttention-2 is asked for, -1 for all; None: the root of the keys.
VARLEN_WINDOWS = {"sliding": None, "window": (1023, 0), "local": (64, 64), "doc_causal": (-1, 0), "chunked": (-1, 0), "documents": (-1, -1)}

# Each shape and setting compiles once; masks of one shape share it, so nothing is dropped between cases.
torch._dynamo.config.recompile_limit = 4096
torch._dynamo.config.accumulated_recompile_limit = 4096
compiled_flex = torch.compile(flex_attention, dynamic=False)


def peers(case: AttentionCase, q, k, v, seen, modifier, flex_settings: dict, uses_formula: bool, details: dict) -> list[Contender]:
    """seen: bool [batch or 1, q_len, kv_len]; modifier: of scores.py; details get the time of create_block_mask. Names that share a word before the colon are settings of one peer."""
    is_square = case.q_len == case.kv_len
    contenders = []
    if case.kv_len <= MOST_DENSE_KEYS and case.score not in NOT_ADDED:
        mask = additive_mask(case, q, seen[:, None], modifier) if modifier else seen[:, None]
        contenders.append(sdpa("cudnn_mask", SDPBackend.CUDNN_ATTENTION, q, k, v, attn_mask=mask))
    if modifier is None and case.form in FIXED_FORMS:
        contenders += fixed_masks(case, q, k, v)
    mod = mask_mod(case, seen, uses_formula and is_square and case.form in FORMULA_FORMS)
    batch = case.batch if len(seen) > 1 else None
    for name, (block_size, options) in flex_settings.items():
        contenders.append(Contender(f"flex:{name}", lambda b=block_size, o=options: flex(mod, batch, modifier, b, o, q, k, v, details)))
    return contenders


def fixed_masks(case: AttentionCase, q, k, v) -> list[Contender]:
    """Those that a flag or a window says."""
    is_square = case.q_len == case.kv_len
    contenders = []
    if case.mask == "full" or (case.mask == "causal" and is_square):
        is_causal = case.mask == "causal"
        contenders.append(sdpa("cudnn", SDPBackend.CUDNN_ATTENTION, q, k, v, is_causal=is_causal))
        contenders.append(sdpa("fa2", SDPBackend.FLASH_ATTENTION, q, k, v, is_causal=is_causal))
    if case.mask in VARLEN_WINDOWS and is_square:
        contenders.append(Contender("fa2_varlen", lambda: varlen(case, q, k, v), lambda output: unpacked(case, output)))
    return contenders


def additive_mask(case: AttentionCase, q, seen, modifier) -> torch.Tensor:
    """[batch or 1, heads, q_len, kv_len] of what is added to scores, in the type of q; -inf where a key is hidden."""
    heads, rows, keys = (torch.arange(n, device=q.device) for n in (case.heads, case.q_len, case.kv_len))
    added = torch.stack([modifier(torch.zeros((), device=q.device), 0, h, rows[:, None], keys).to(q.dtype) for h in heads])
    return added.masked_fill(~seen, -math.inf)


def sdpa(name: str, backend: SDPBackend, q, k, v, **options) -> Contender:
    is_grouped = q.shape[1] != k.shape[1]

    def run() -> torch.Tensor:
        with sdpa_kernel(backend):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=is_grouped, **options)

    return Contender(name, lambda: run)


def packed_offsets(case: AttentionCase) -> torch.Tensor:
    """Start offsets of the sequences of all batch elements one after the other, then the end."""
    if case.mask in ("doc_causal", "documents"):
        starts = masks.documents(case.kv_len)[:-1]
    elif case.mask == "chunked":
        starts = torch.arange(0, case.kv_len, 1024, dtype=torch.int32, device="cuda")
    else:
        starts = torch.zeros(1, dtype=torch.int32, device="cuda")
    ends = torch.tensor([case.batch * case.kv_len], dtype=torch.int32, device="cuda")
    return torch.cat([starts + b * case.kv_len for b in range(case.batch)] + [ends])


def varlen(case: AttentionCase, q, k, v) -> Callable[[], torch.Tensor]:
    from torch.nn.attention.varlen import varlen_attn  # not in every PyTorch

    packed = [x.transpose(1, 2).flatten(0, 1).contiguous() for x in (q, k, v)]
    offsets = packed_offsets(case)
    longest = int(offsets.diff().max())
    width = math.isqrt(case.kv_len)
    window = VARLEN_WINDOWS[case.mask] or (width, width)

    def run(**options) -> torch.Tensor:
        return varlen_attn(*packed, offsets, offsets, longest, longest, **options)

    try:
        run(window_size=window)
    except TypeError:
        if window not in ((-1, 0), (-1, -1)):
            raise
        return lambda: run(is_causal=window == (-1, 0))
    return lambda: run(window_size=window)


def unpacked(case: AttentionCase, output: torch.Tensor) -> torch.Tensor:
    return output.unflatten(0, (case.batch, case.q_len)).transpose(1, 2)


def mask_mod(case: AttentionCase, seen: torch.Tensor, uses_formula: bool) -> Callable:
    """What FlexAttention asks of a pair: its bit of the dense mask, or the formula of a mask that has a short one."""
    n = case.kv_len
    width = math.isqrt(n)

    def is_global(i):
        return (i < width) | ((i >= n // 2) & (i < n // 2 + width))

    formulas = {
        "full": lambda b, h, q, k: q >= 0,
        "causal": lambda b, h, q, k: q >= k,
        "sliding": lambda b, h, q, k: (q - k).abs() <= width,
        "window": lambda b, h, q, k: (q >= k) & (q - k < 1024),
        "dilated": lambda b, h, q, k: ((q - k).abs() <= 2 * width) & ((q - k) % 2 == 0),
        "longformer": lambda b, h, q, k: ((q - k).abs() <= width) | is_global(q) | is_global(k),
        "prefix": lambda b, h, q, k: (q >= k) | (k < n // 4),
        "chunked": lambda b, h, q, k: (q >= k) & (q // 1024 == k // 1024),
        "sinks": lambda b, h, q, k: (q >= k) & ((q - k < 1024) | (k < 4)),
        "frames": lambda b, h, q, k: q // 256 >= k // 256,
        "grid": lambda b, h, q, k: ((q // width - k // width).abs() <= 6) & ((q % width - k % width).abs() <= 6),
        "strided": lambda b, h, q, k: (q >= k) & ((q - k < width) | ((q - k) % width == 0)),
        "local": lambda b, h, q, k: (q - k).abs() <= 64,
    }
    if uses_formula and case.mask in ("doc_causal", "documents"):
        document = masks.document_of(n)
        is_causal = case.mask == "doc_causal"
        return lambda b, h, q, k: (document[q] == document[k]) & ((q >= k) if is_causal else (q >= 0))
    if uses_formula and case.mask in formulas:
        formula = formulas[case.mask]
        if case.form != "lengths":
            return formula
        lengths = arriving_masks.key_lengths(case)
        return lambda b, h, q, k: formula(b, h, q, k) & (k < lengths[b])
    if len(seen) > 1:
        return lambda b, h, q, k: seen[b, q, k]
    shared = seen[0]
    return lambda b, h, q, k: shared[q, k]


def flex(mod: Callable, batch: int | None, modifier: Callable | None, block_size: int, options: dict, q, k, v, details: dict) -> Callable[[], torch.Tensor]:
    for _ in range(2):
        torch.cuda.synchronize()
        start = time.perf_counter()
        block_mask = create_block_mask(mod, batch, None, q.shape[2], k.shape[2], device="cuda", BLOCK_SIZE=block_size)
        torch.cuda.synchronize()
        time_ms = round((time.perf_counter() - start) * 1e3, 2)
    details["block_mask_ms"] = min(time_ms, details.get("block_mask_ms", time_ms))
    arguments = {"block_mask": block_mask, "enable_gqa": q.shape[1] != k.shape[1]}
    if modifier:
        arguments["score_mod"] = modifier
    if options:
        arguments["kernel_options"] = options
    return lambda: compiled_flex(q, k, v, **arguments)
