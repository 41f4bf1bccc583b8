"""Cases, results and tables of the bench scripts. Needs neither a GPU nor PyTorch."""

import collections
import json
import math
import os
import re
import shlex
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path

PROFILES = Path(__file__).parents[2] / "profiles"
DTYPES = {"fp16": "float16", "bf16": "bfloat16"}
SCORES = ["alibi", "softcap", "relative", "bias"]  # what modifies scores, as scores.py says
DOCUMENT_MASKS = ["doc_causal", "documents"]
FORMS = ["lengths", "offsets", "bytes", "columns"]  # in which masks arrive on each run, as arriving_masks.py says

ATTENTION_CASES = """
causal:1:12:1024:64 sliding:1:12:1024:64 longformer:1:12:1024:64 bigbird:1:12:1024:64 dilated:1:12:1024:64
causal:1:12:4096:64 sliding:1:12:4096:64 longformer:1:12:4096:64 bigbird:1:12:4096:64 dilated:1:12:4096:64
causal:16:12:512:64 sliding:16:12:512:64 longformer:16:12:512:64 bigbird:16:12:512:64 dilated:16:12:512:64
causal:16:12:2048:64 sliding:16:12:2048:64 longformer:16:12:2048:64 bigbird:16:12:2048:64 dilated:16:12:2048:64
causal:16:12:4096:64 sliding:16:12:4096:64 longformer:16:12:4096:64 bigbird:16:12:4096:64 dilated:16:12:4096:64
full:16:12:2048:64 full:1:32:8192:128 causal:1:32:8192:128 causal:1:32:16384:128 window:1:32:16384:128
doc_causal:1:32:16384:128 bigbird_block:1:32:8192:128 longformer:1:32:8192:128 random1:1:32:8192:128
random1:1:12:4096:64 bigbird_block:1:12:4096:64 sliding:1:12:16384:64 longformer:1:12:16384:64
causal:8:16:512:64 sliding:1:12:128:64 causal:1:12:128:64
causal:16:12:2048:64:bf16 sliding:16:12:2048:64:bf16 longformer:16:12:2048:64:bf16
causal:4:16:2048:96 sliding:4:16:2048:96 longformer:4:16:2048:96 causal:4:8:2048:256 sliding:4:8:2048:256 longformer:4:8:2048:256
causal:1:32:4096:128:kv4 window:1:32:4096:128:kv4 longformer:1:32:4096:128:kv4
full:16:32:4096:128:kv4:q1 full:1:32:4096:128:kv4:q1 full:1:32:4096:128:kv8:q1 full:16:32:4096:128:kv4:q16
causal:1:32:4096:128:kv8:q256 causal:1:32:16384:128:kv8:q128 full:1:8:16384:128:q64
full:1:32:1024:128:kv8:q1 full:64:32:1024:128:kv8:q1 full:1:32:4096:128:kv4:q4 full:16:16:2048:64:q1 full:2:8:16384:64:q1
full:32:16:2048:64:q1 full:4:8:4096:256:q1 full:32:12:2048:96:q1
causal:32:16:256:128 full:32:16:256:128 causal:32:16:192:128 full:32:16:192:128
causal:4:16:1024:128 full:16:32:128:128 full:8:12:512:64
sliding:4:16:2048:128 longformer:4:16:2048:128 bigbird:4:16:2048:128 doc_causal:2:16:4096:128 dilated:2:16:1024:64
""".split()

FUSION_SIZES = {
    "bias_res_ln": [(128, 768), (4096, 768), (32768, 768), (4096, 4096)],
    "rmsnorm": [(4096, 768), (32768, 768), (32768, 1024)],
    "gemm_hh": [(128, 768), (4096, 768), (32768, 768), (4096, 4096), (1, 4096), (16, 4096)],
    "gemm_h3h_bias": [(128, 768), (4096, 768), (32768, 768), (4096, 4096)],
    "gemm_bias_gelu": [(128, 768), (4096, 768), (32768, 768), (32768, 1024), (4096, 4096)],
    "gated": [(128, 768), (4096, 768), (128, 4096), (4096, 4096), (32768, 4096)],
    "gemm_bias_res_ln": [(128, 768), (4096, 768), (32768, 768), (4096, 4096)],
    "mlp_res_ln": [(128, 768), (4096, 768), (32768, 768), (4096, 4096)],
    "mlp_res": [(1, 768), (16, 768), (64, 768), (1, 4096), (16, 4096)],
    "gated_mlp_res": [(1, 4096), (16, 4096)],
}
FUSION_CASES = [f"{group}:{tokens}:{hidden}" for group, sizes in FUSION_SIZES.items() for tokens, hidden in sizes]
MODELS = ["bert-base", "bert-large", "gpt2", "t5-base", "vit-base", "llama-7b-4layers"]
MODEL_SIZES = [(1, 128), (8, 512), (16, 2048)]
MODEL_CASES = [f"{model}:{batch}:{seq}" for model in MODELS for batch, seq in MODEL_SIZES]
# Products of weights: what a run costs beside the passes over x.
GROUP_FLOPS = {"bias_res_ln": 0, "rmsnorm": 0, "gemm_hh": 2, "gemm_h3h_bias": 6, "gemm_bias_gelu": 8, "gated": 32 / 3, "gemm_bias_res_ln": 2, "mlp_res_ln": 16, "mlp_res": 16, "gated_mlp_res": 16}


@dataclass(frozen=True)
class AttentionCase:
    """mask:batch:heads:seq:head_dim, then any of :bf16, :kvN (key heads), :qN (the last N queries), one of SCORES and one of FORMS."""

    text: str
    mask: str
    batch: int
    heads: int
    kv_len: int
    head_dim: int
    dtype: str = "float16"
    kv_heads: int = 0
    q_len: int = 0
    score: str = ""
    form: str = ""

    @property
    def cost(self) -> int:
        return self.batch * self.heads * self.q_len * self.kv_len * self.head_dim

    @property
    def kind(self) -> str:
        """Apart from the others: masks that arrive on each run; modified scores; other types and widths, shared key heads, single queries."""
        if self.form:
            return "masks that arrive"
        if self.score:
            return "score modifiers"
        if self.dtype != "float16" or self.head_dim not in (64, 128) or (self.kv_heads, self.q_len) != (self.heads, self.kv_len):
            return "other shapes"
        return "causal and full" if self.mask in ("causal", "full") else "sparse"

    @property
    def shape(self) -> dict:
        names = ("mask", "score", "form", "dtype", "batch", "heads", "kv_heads", "q_len", "kv_len", "head_dim")
        return {name: getattr(self, name) for name in names}


REPLAY_US = 3.0  # of a graph that does next to nothing
TILE = 64


def masked_work(case: AttentionCase, pairs: int, tiles: int, gpu: dict) -> dict:
    """What a head that sees `pairs` pairs in `tiles` tiles of 64 x 64 asks for. flops: of the pairs, of all heads; floor_us: the largest of the times
    that memory, exponentials and keys would take at the rates of the profile of a GPU, behind the start of a replay. Keys are those of tiles, read
    from L2 once for 128 queries, also of heads that share them, and multiplied by tensor cores, or of pairs, each read from L2, whichever is faster."""
    tiles_of_read = max(2, min(case.heads // case.kv_heads, 128 // case.q_len))
    heads, key_bytes = case.batch * case.heads, 4 * case.head_dim  # with the value
    rows = heads * case.q_len + case.batch * case.kv_heads * case.kv_len
    products = 4 * heads * tiles * TILE * min(TILE, case.q_len) * case.head_dim
    by_tiles = max(products / (gpu["tensor_tflops"] * 1e12), heads * (tiles * TILE / tiles_of_read + case.q_len) * key_bytes / (gpu["l2_gbps"] * 1e9))
    by_pairs = heads * pairs * key_bytes / (gpu["l2_gbps"] * 1e9)
    seconds = max(rows * key_bytes / (gpu["dram_gbps"] * 1e9), heads * pairs / (gpu["exp2_gops"] * 1e9), min(by_tiles, by_pairs))
    return {"flops": 4 * heads * pairs * case.head_dim, "floor_us": round(REPLAY_US + seconds * 1e6, 2)}


@dataclass(frozen=True)
class FusionCase:
    """group:T:h, then :bf16 or nothing."""

    text: str
    group: str
    tokens: int
    hidden: int
    dtype: str = "float16"

    @property
    def cost(self) -> int:
        return self.tokens * self.hidden * (GROUP_FLOPS[self.group] * self.hidden + 1)

    @property
    def kind(self) -> str:
        return self.group


@dataclass(frozen=True)
class ModelCase:
    """model:batch:seq, then :bf16 or nothing."""

    text: str
    model: str
    batch: int
    seq: int
    dtype: str = "float16"

    @property
    def cost(self) -> int:
        return self.batch * self.seq * (4 if self.model.endswith("layers") else 1)

    @property
    def kind(self) -> str:
        return self.model

    @property
    def tokens(self) -> int:
        return self.patches**2 + 1 if self.model == "vit-base" else self.seq

    @property
    def patches(self) -> int:
        """Of ViT, along a side: as many as fit, but ten for 128 tokens, as images of 160 pixels have."""
        return 10 if self.seq == 128 else math.isqrt(self.seq - 1)

    @property
    def image_size(self) -> int:
        return 16 * self.patches

    @property
    def is_causal(self) -> bool:
        return self.model in ("gpt2", "llama-7b-4layers")

    @property
    def mask(self) -> str | None:
        return None if self.model == "vit-base" else "sliding"

    @property
    def layers(self) -> int:
        """0: all."""
        return 4 if self.model == "llama-7b-4layers" else 0


def number(text: str, case: str) -> int:
    if not re.fullmatch(r"[1-9][0-9]*", text):
        raise ValueError(f"case {case}: '{text}' is no positive number")
    return int(text)


def parse_attention_case(text: str) -> AttentionCase:
    mask, *fields = text.split(":")
    if len(fields) < 4:
        raise ValueError(f"case {text}: expected mask:batch:heads:seq:head_dim")
    batch, heads, seq, head_dim = (number(field, text) for field in fields[:4])
    options = {"kv_heads": heads, "q_len": seq}
    for field in fields[4:]:
        if field in DTYPES:
            options["dtype"] = DTYPES[field]
        elif field in SCORES:
            if "score" in options:
                raise ValueError(f"case {text}: scores are modified by one of {', '.join(SCORES)}, not by {options['score']} and {field}")
            options["score"] = field
        elif field in FORMS:
            if "form" in options:
                raise ValueError(f"case {text}: a mask arrives in one of {', '.join(FORMS)}, not in {options['form']} and {field}")
            if field == "offsets" and mask not in DOCUMENT_MASKS:
                raise ValueError(f"case {text}: offsets are those of {', '.join(DOCUMENT_MASKS)}")
            options["form"] = field
        elif field.startswith("kv"):
            options["kv_heads"] = number(field[2:], text)
        elif field.startswith("q"):
            options["q_len"] = number(field[1:], text)
        else:
            raise ValueError(f"case {text}: '{field}' is none of bf16, kvN, qN, {', '.join(SCORES + FORMS)}")
    if heads % options["kv_heads"] != 0:
        raise ValueError(f"case {text}: {options['kv_heads']} key heads do not divide {heads} heads")
    return AttentionCase(text, mask, batch, heads, seq, head_dim, **options)


def parse_fusion_case(text: str) -> FusionCase:
    group, *fields = text.split(":")
    if group not in FUSION_SIZES:
        raise ValueError(f"case {text}: no group '{group}', there is {', '.join(FUSION_SIZES)}")
    if len(fields) not in (2, 3) or (len(fields) == 3 and fields[2] not in DTYPES):
        raise ValueError(f"case {text}: expected group:T:h or group:T:h:bf16")
    dtype = DTYPES[fields[2]] if len(fields) == 3 else "float16"
    return FusionCase(text, group, number(fields[0], text), number(fields[1], text), dtype)


def parse_model_case(text: str) -> ModelCase:
    model, *fields = text.split(":")
    if model not in MODELS:
        raise ValueError(f"case {text}: no model '{model}', there is {', '.join(MODELS)}")
    if len(fields) not in (2, 3) or (len(fields) == 3 and fields[2] not in DTYPES):
        raise ValueError(f"case {text}: expected model:batch:seq or model:batch:seq:bf16")
    dtype = DTYPES[fields[2]] if len(fields) == 3 else "float16"
    case = ModelCase(text, model, number(fields[0], text), number(fields[1], text), dtype)
    if model == "vit-base" and case.seq < 2:
        raise ValueError(f"case {text}: an image has at least 2 tokens")
    return case


def parse_cases(texts: list[str], parse, defaults: list[str]) -> list:
    """Of the command line, in its order; without any the defaults, cheapest first."""
    if texts:
        return [parse(text) for text in dict.fromkeys(texts)]
    return sorted((parse(text) for text in defaults), key=lambda case: case.cost)


def kernel_names(explanation: str) -> str:
    """The templates of a plan in launch order: "gemm_sm90 + layer_norm"."""
    templates = re.findall(r"^.*: (\S+), grid \d+x\d+x\d+, block ", explanation, re.M)
    return " + ".join(Path(template).stem for template in templates)


def counted_kernels(explanation: str) -> str:
    """The templates of a plan, the most frequent first: "72 gemm_sm90, 25 layer_norm"."""
    counts = collections.Counter(kernel_names(explanation).split(" + "))
    return ", ".join(f"{count} {name}" for name, count in counts.most_common())


def median_of_rounds(rounds: list[list[float]]) -> float:
    return statistics.median(time_us for times in rounds for time_us in times)


def ratio_of_rounds(peer: list[list[float]], stof: list[list[float]]) -> float:
    """How many times slower the peer is: the median over rounds of the ratio of their medians."""
    return statistics.median(statistics.median(p) / statistics.median(s) for p, s in zip(peer, stof, strict=True))


PER_UNIT = {"us": 1, "ms": 1000}  # microseconds


def make_row(case: str, rounds: dict[str, list[list[float]]], failures: dict[str, str], unit: str = "us", **more) -> dict:
    """A row of the results. rounds: times in microseconds by contender and round, "stof" among them, and "untuned", which is no peer, where that is
    tuned; the row has them in `unit`.

    A contender that failed has its failure in words for a time."""
    times: dict = {name: round(median_of_rounds(of) / PER_UNIT[unit], 3 if unit == "us" else 5) for name, of in rounds.items()}
    peers = {name: time_us for name, time_us in (times | failures).items() if name not in ("stof", "untuned")}
    measured = {name: time_us for name, time_us in peers.items() if not isinstance(time_us, str)}
    row = {"case": case, f"stof_{unit}": times.get("stof"), "peers": peers, **more}
    if "untuned" in rounds:
        row[f"untuned_{unit}"] = times["untuned"]
    if "stof" in rounds and "flops" in row:
        row["tflops"] = round(row["flops"] / median_of_rounds(rounds["stof"]) * 1e-6, 1)
    if "stof" in rounds and "floor_us" in row:
        row["of_floor"] = round(row["floor_us"] / median_of_rounds(rounds["stof"]), 3)
    for name in ("untuned", "stof"):
        if name in failures:
            row["failure"] = failures[name]
    if measured:
        best = min(measured, key=measured.__getitem__)
        row |= {"best_peer": best, f"best_peer_{unit}": measured[best]}
        if "stof" in rounds:
            row["ratio"] = round(ratio_of_rounds(rounds[best], rounds["stof"]), 4)
    return row


def geometric_means(rows: list[dict], kinds: dict[str, list[str]]) -> list[tuple[str, float, float, int]]:
    """(kind, geometric mean, least, number) of the ratios of the rows whose kind is listed under it."""
    means = []
    for name, members in kinds.items():
        ratios = [row["ratio"] for row in rows if row["kind"] in members and "ratio" in row]
        if ratios:
            means.append((name, math.exp(statistics.fmean(map(math.log, ratios))), min(ratios), len(ratios)))
    return means


def gpu_profile(name: str) -> dict | None:
    """What the library ships of a GPU of that name."""
    profiles = (json.loads(path.read_text()) for path in sorted(PROFILES.glob("*.json")))
    return next((profile for profile in profiles if profile["name"] == name), None)


def cell(value, form: str) -> str:
    return "–" if value is None else format(value, form)


# What rows of some scripts have besides, in a column each.
MORE_COLUMNS = {"untuned_us": ("untuned µs", ".2f"), "untuned_ms": ("untuned ms", ".3f"), "tflops": ("TFLOP/s", ".0f"), "of_floor": ("share of the floor", ".0%"), "layout_ms": ("layout ms", ".3f"), "block_mask_ms": ("create_block_mask ms", ".1f")}


def day(results: dict) -> str:
    return results.get("date", "")[:10]


def markdown(results: dict, kinds: dict[str, list[str]], unit: str = "us") -> str:
    header = ", ".join(f"{name} {results[name]}" for name in ("date", "gpu", "driver", "cuda", "clocks_mhz") if results.get(name))
    symbol, digits = ("µs", ".2f") if unit == "us" else ("ms", ".3f")
    last = "kernel" if unit == "us" else "launches"
    more = [name for name in MORE_COLUMNS if any(name in row for row in results["rows"])]
    titles = ["case", f"STOF {symbol}", f"best peer {symbol}", "which", "ratio", "error", *(MORE_COLUMNS[name][0] for name in more), last]
    lines = [f"`{results['command']}`", "", header, "", f"| {' | '.join(titles)} |"]
    lines.append(f"| --- | ---: | ---: | --- | ---: | ---: |{' ---: |' * len(more)} --- |")
    for row in results["rows"]:
        cells = [row["case"], cell(row[f"stof_{unit}"], digits), cell(row.get(f"best_peer_{unit}"), digits), row.get("best_peer", "–")]
        cells += [cell(row.get("ratio"), ".3f"), cell(row.get("error"), ".1e"), *(cell(row.get(name), MORE_COLUMNS[name][1]) for name in more)]
        cells.append(str(row.get(last) or "–"))
        lines.append(f"| {' | '.join(cells)} |")
    later: dict[str, list[str]] = {}
    for row in results["rows"]:
        if row.get("date", day(results)) != day(results):
            later.setdefault(row["date"], []).append(row["case"])
    if later:
        lines += [""] + [f"Measured on {date}: {', '.join(cases)}." for date, cases in sorted(later.items())]
    means = geometric_means(results["rows"], kinds)
    if means:
        lines += ["", "| best peer / STOF | geometric mean | least | cases |", "| --- | ---: | ---: | ---: |"]
        lines += [f"| {name} | {mean:.3f} | {least:.3f} | {count} |" for name, mean, least, count in means]
    failures = [(row["case"], "stof", row["failure"]) for row in results["rows"] if "failure" in row]
    failures += [(row["case"], name, value) for row in results["rows"] for name, value in row["peers"].items() if isinstance(value, str)]
    if failures:
        lines += ["", "Failures:", ""] + [f"- {case}, {name}: {text}" for case, name, text in failures]
    if results.get("left_out"):
        lines += ["", f"Left out, for the time was up: {', '.join(results['left_out'])}."]
    return "\n".join(lines) + "\n"


def replace_file(path: Path, text: str) -> None:
    """The whole of the text, or what was there."""
    partial = path.with_name(path.name + ".partial")
    partial.write_text(text)
    os.replace(partial, path)


class Results:
    """What a script has measured, on disk after each row: <name>.json and <name>.md."""

    def __init__(self, folder: Path, name: str, kinds: dict[str, list[str]], continues: bool = False, unit: str = "us"):
        self.unit = unit
        self.json_path, self.table_path, self.kinds = folder / f"{name}.json", folder / f"{name}.md", kinds
        folder.mkdir(parents=True, exist_ok=True)
        if continues:
            if not self.json_path.is_file():
                raise SystemExit(f"--continue: there are no results to add to: {self.json_path}")
            self.data = json.loads(self.json_path.read_text())
        else:
            command = shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])
            self.data = {"command": command, "date": time.strftime("%Y-%m-%d %H:%M:%S"), "rows": [], "left_out": []}

    def describe(self, **header) -> None:
        self.data = {**self.data, **header, "rows": self.data["rows"], "left_out": self.data["left_out"]}
        self.write()

    def add(self, row: dict) -> None:
        """In the place of an older row of the case; with its day, where that is not the one of the others."""
        case, today = row["case"], time.strftime("%Y-%m-%d")
        if day(self.data) and today != day(self.data):
            row = {**row, "date": today}
        self.data["rows"] = [*(one for one in self.data["rows"] if one["case"] != case), row]
        self.data["left_out"] = [one for one in self.data["left_out"] if one != case]
        self.write()

    def leave_out(self, cases: list[str]) -> None:
        self.data["left_out"] = cases
        self.write()

    def write(self) -> None:
        replace_file(self.json_path, json.dumps(self.data, indent=1, ensure_ascii=False) + "\n")
        replace_file(self.table_path, markdown(self.data, self.kinds, self.unit))


def one_line(error: object, most: int = 300) -> str:
    """An exception as a line of a table."""
    text = " ".join(str(error).split()).replace("|", "/") or type(error).__name__
    return text if len(text) <= most else text[: most - 1] + "…"
