"""What modifies the scores of a case of attention, for FlexAttention and for float64 alike."""

from typing import Callable

import torch

from bench_results import AttentionCase
from bench_timing import DTYPES

CAP = 50.0  # of Gemma 2


def biases(case: AttentionCase, generator: torch.Generator) -> dict[str, torch.Tensor]:
    """The input of the plan that its scores read, normal numbers, where they read one."""
    shapes = {"relative": (case.heads, case.q_len + case.kv_len - 1), "bias": (case.heads, case.q_len, case.kv_len)}
    if case.score not in shapes:
        return {}
    return {"bias": torch.randn(shapes[case.score], device="cuda", dtype=DTYPES[case.dtype], generator=generator)}


def modifier(case: AttentionCase, biases: dict[str, torch.Tensor]) -> Callable | None:
    """What FlexAttention calls score_mod; numbers or tensors that broadcast."""
    past = case.kv_len - case.q_len
    if case.score == "alibi":
        slopes = torch.exp2(-8 / case.heads * torch.arange(1, case.heads + 1, device="cuda"))
        return lambda score, b, h, q, k: score + slopes[h] * (k - q - past)
    if case.score == "softcap":
        return lambda score, b, h, q, k: CAP * torch.tanh(score / CAP)
    if case.score == "relative":
        bias = biases["bias"]
        return lambda score, b, h, q, k: score + bias[h, k - q + case.q_len - 1]
    if case.score == "bias":
        bias = biases["bias"]
        return lambda score, b, h, q, k: score + bias[h, q, k]
    return None
