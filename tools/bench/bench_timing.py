"""Times contenders on one GPU: CUDA graphs that are replayed in turn, each after a flush of the L2 that leaves clean lines."""

import gc
import logging
import math
import subprocess
import time
import warnings
from dataclasses import dataclass, field
from typing import Callable

import torch

import bench_results
from bench_plans import Engine
from bench_results import AttentionCase, FusionCase, ModelCase

FLUSH_ELEMENTS = 256 << 18  # of 4 bytes: 256 MiB
LEAST_REPLAYS = 25
WARM_UPS = 3
MOST_PEER_ERROR = 0.03  # a peer beyond it computes something else

DTYPES = {"float16": torch.float16, "bfloat16": torch.bfloat16}


def quiet() -> None:
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)


@dataclass
class Contender:
    """One way to compute a case. prepare: gives what is timed. shaped: makes of its output what the others give."""

    name: str
    prepare: Callable[[], Callable[[], torch.Tensor]]
    shaped: Callable[[torch.Tensor], torch.Tensor] = lambda output: output


class Captured:
    """A contender as a CUDA graph of one run."""

    def __init__(self, contender: Contender):
        self.name, self.shaped = contender.name, contender.shaped
        self.run = contender.prepare()
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(WARM_UPS):
                self.run()
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, stream=stream):
            self.output = self.run()  # the memory that each replay writes

    def result(self) -> torch.Tensor:
        """Of a replay alone: what was there before is overwritten first."""
        self.output.fill_(math.nan)
        self.graph.replay()
        torch.cuda.synchronize()
        return self.shaped(self.output)


class Timer:
    def __init__(self, rounds: int):
        self.rounds, self.passes = rounds, max(1, math.ceil(LEAST_REPLAYS / rounds))
        self.dirty, self.clean = (torch.zeros(FLUSH_ELEMENTS, dtype=torch.int32, device="cuda") for _ in range(2))

    def flush(self) -> None:
        # Dirty lines would be written back inside the timing: reading other memory evicts them.
        self.dirty.zero_()
        self.clean.sum()

    def replay_us(self, captured: Captured) -> float:
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        self.flush()
        # The flush is still running here, so the GPU never waits for this program in between.
        start.record()
        captured.graph.replay()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) * 1e3

    def measure(self, contenders: list[Captured]) -> dict[str, list[list[float]]]:
        """Microseconds by contender and round."""
        for captured in contenders:
            self.replay_us(captured)
        times = {captured.name: [] for captured in contenders}
        for _ in range(self.rounds):
            for of in times.values():
                of.append([])
            for turn in range(self.passes):
                # Each in each place as often as the passes allow, for what runs before may matter.
                first = turn % len(contenders)
                for captured in contenders[first:] + contenders[:first]:
                    times[captured.name][-1].append(self.replay_us(captured))
        return times

    def floor_us(self) -> float:
        """Of a graph that does next to nothing."""
        one = torch.empty(1, device="cuda")
        times = self.measure([Captured(Contender("floor", lambda: one.zero_))])
        return round(bench_results.median_of_rounds(times["floor"]), 2)


def relative_error(result: torch.Tensor, expected: torch.Tensor) -> float:
    """‖O − O64‖ / ‖O64‖; infinite for what is no number."""
    error = (torch.linalg.vector_norm(result.double() - expected) / torch.linalg.vector_norm(expected)).item()
    return error if math.isfinite(error) else math.inf


class FirstCalls:
    """Seconds of the first call of each contender, with compilation, and its peak memory."""

    def __init__(self):
        self.seconds, self.peak_mib = {}, {}

    def timed(self, name: str, run: Callable) -> Callable:
        torch.cuda.reset_peak_memory_stats()
        start = time.perf_counter()
        run()
        torch.cuda.synchronize()
        self.seconds[name] = round(time.perf_counter() - start, 2)
        self.peak_mib[name] = torch.cuda.max_memory_allocated() >> 20
        return run


@dataclass
class Problem:
    """A case with its tensors."""

    case: AttentionCase | FusionCase | ModelCase
    tensors: dict[str, torch.Tensor]  # inputs and the output, by the names of the plan
    output: str
    peers: list[Contender]
    sampled: Callable[[torch.Tensor], torch.Tensor]  # some rows of an output …
    expected: torch.Tensor  # … and what they are in float64
    weights: dict[str, torch.Tensor] = field(default_factory=dict)  # on the host, by name; the plan takes those that it has
    first_calls: FirstCalls | None = None  # of peers that take long to compile
    details: dict = field(default_factory=dict)  # more of the row, known when all has run


class CaseRun:
    """Measures STOF and the peers on one problem. A failure of any of them becomes a text of the row."""

    def __init__(self, problem: Problem, unit: str):
        self.problem, self.unit, self.plan = problem, unit, None
        self.captured, self.errors, self.failures = [], {}, {}
        self.details = {"kind": problem.case.kind, "kernel": ""}

    def row(self, engine: Engine, tuner: Engine | None, timer: Timer) -> dict:
        """tuner: whose plans are tuned; those of the engine are then timed beside them, as what is "untuned"."""
        if tuner:
            self.enter(Contender("untuned", lambda: self.prepare_stof(engine)), math.inf)
        self.enter(Contender("stof", lambda: self.prepare_stof(tuner or engine)), math.inf)
        for peer in self.problem.peers:
            self.enter(peer, MOST_PEER_ERROR)
        rounds = {}
        try:
            rounds = timer.measure(self.captured)
            self.measure_layout()
        except Exception as error:
            self.failures.setdefault("stof", bench_results.one_line(error))
        errors = {name: float(f"{error:.3e}") for name, error in self.errors.items()}
        errors.pop("untuned", None)
        self.details |= {"error": errors.pop("stof", None), "peer_errors": errors, **self.problem.details}
        return bench_results.make_row(self.problem.case.text, rounds, self.failures, self.unit, **self.details)

    def enter(self, contender: Contender, most_error: float) -> None:
        try:
            captured = Captured(contender)
            error = relative_error(self.problem.sampled(captured.result()), self.problem.expected)
            if not math.isfinite(error) or error > most_error:
                raise ValueError(f"wrong result, error {error:.1e}")
            self.errors[contender.name] = error
            self.captured.append(captured)
        except Exception as error:  # of compilers and libraries of all kinds; the bench goes on
            self.failures[contender.name] = bench_results.one_line(error)

    def prepare_stof(self, engine: Engine) -> Callable[[], torch.Tensor]:
        start = time.perf_counter()
        self.plan = engine.plan(self.problem.case)
        self.details["build_ms"] = round((time.perf_counter() - start) * 1e3, 1)
        explanation = self.plan.explain()
        self.details |= {"kernel": bench_results.kernel_names(explanation), "explanation": explanation.splitlines()}
        if self.problem.weights:
            self.prepare_model(engine, explanation)
        self.plan.bind(self.problem.tensors)
        plan, output = self.plan, self.problem.tensors[self.problem.output]

        def run() -> torch.Tensor:
            plan.launch(torch.cuda.current_stream().cuda_stream)
            return output

        return run

    def prepare_model(self, engine: Engine, explanation: str) -> None:
        start = time.perf_counter()
        warm = Engine(engine.library).plan(self.problem.case)
        del warm
        self.details["warm_build_ms"] = round((time.perf_counter() - start) * 1e3, 1)
        self.details["launches"] = explanation.count(", block ")
        self.details["kernel"] = bench_results.counted_kernels(explanation)
        del self.details["explanation"]  # of a hundred launches
        self.plan.load_weights(self.problem.weights)
        self.details["memory_mib"] = sum(self.plan_bytes()) >> 20

    def plan_bytes(self) -> list[int]:
        """Of weights, tensors and workspace."""
        tensors = [*self.problem.weights.values(), *self.problem.tensors.values()]
        return [tensor.numel() * tensor.element_size() for tensor in tensors] + [self.plan.workspace_bytes()]

    def measure_layout(self) -> None:
        first = self.problem.first_calls
        if first:
            self.details |= {"peer_first_s": first.seconds, "peer_memory_mib": first.peak_mib}
        layout_ms = self.plan.layout_ms() if self.plan else None
        if layout_ms is not None:
            self.details["layout_ms"] = layout_ms


def gpu_works() -> bool:
    """False for good once a kernel has failed in this process."""
    try:
        torch.cuda.synchronize()
        return torch.ones(1, device="cuda").item() == 1
    except RuntimeError:
        return False


def clocks_mhz() -> dict[str, int]:
    """As the driver says; empty where it does not."""
    names = ("sm", "mem")
    query = ",".join([f"clocks.{name}" for name in names] + [f"clocks.max.{name}" for name in names])
    command = ["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader,nounits", "-i", "0"]
    try:
        values = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout.split(",")
        return dict(zip(("sm", "memory", "sm_max", "memory_max"), (int(value) for value in values)))
    except (OSError, ValueError, subprocess.SubprocessError):
        return {}


def driver_version() -> str:
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader", "-i", "0"]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def describe_machine(timer: Timer) -> dict:
    floor_us = timer.floor_us()  # first, so that the clocks are those of a GPU that works
    return {
        "gpu": torch.cuda.get_device_name(),
        "driver": driver_version(),
        "cuda": torch.version.cuda,
        "torch": torch.__version__,
        "clocks_mhz": clocks_mhz(),
        "floor_us": floor_us,
    }


def tidy() -> None:
    """Between cases: gives back the memory of tensors and graphs that are gone."""
    gc.collect()
    torch.cuda.empty_cache()
