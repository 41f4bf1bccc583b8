"""Masks that arrive on each run: the inputs of a plan that carry them, and what they show."""

import torch

from bench_results import AttentionCase
from peers import masks


def seen_and_inputs(case: AttentionCase) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """What is seen, bool [batch or 1, q_len, kv_len], and the plan's inputs by name, none for a mask that is fixed."""
    seen = masks.build(case.mask, case.kv_len)[None, -case.q_len :].contiguous()
    if case.form == "lengths":
        lengths = key_lengths(case)
        keys = torch.arange(case.kv_len, device="cuda")
        return seen & (keys < lengths[:, None, None]), {"lengths": lengths}
    if case.form == "offsets":
        return seen, {"offsets": masks.documents(case.kv_len)}
    if case.form == "bytes":
        return seen, {"bytes": seen[None]}
    if case.form == "columns":
        ends = seen[0].sum(1).cumsum(0)
        return seen, {"columns.row_ptr": torch.nn.functional.pad(ends, (1, 0)).int(), "columns.col_idx": seen[0].nonzero()[:, 1].int()}
    return seen, {}


def key_lengths(case: AttentionCase) -> torch.Tensor:
    """int32 [batch], a quarter of the keys to all of them, as padded batches have."""
    generator = torch.Generator().manual_seed(3)
    least = max(1, case.kv_len // 4)
    return torch.randint(least, case.kv_len + 1, (case.batch,), generator=generator, dtype=torch.int32).cuda()
