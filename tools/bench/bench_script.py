"""What the scripts share: arguments, and the loop over cases."""

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Callable

import bench_plans
import bench_results


def arguments_of(description: str, add_options: Callable[[argparse.ArgumentParser], None]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=Path, default=bench_plans.DEFAULT_LIBRARY, help="libstof_bench.so (%(default)s)")
    parser.add_argument("--output", type=Path, default=Path("."), help="folder of the results (%(default)s)")
    parser.add_argument("--cases", nargs="+", default=[], metavar="CASE", help="in this order; by default all of the goals, cheapest first")
    parser.add_argument("--peers", choices=("best", "all", "none"), default="best", help="all: with those that take long to compile (%(default)s)")
    parser.add_argument("--tune", action="store_true", help="times all settings of the kernels of STOF first, and what the model chooses beside the best")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of interleaved replays (%(default)s)")
    parser.add_argument("--budget-seconds", type=float, help="starts no case after so many seconds")
    parser.add_argument("--plan", metavar="TARGET", help="only prints what runs on a target such as sm_90a; needs no GPU and no PyTorch")
    parser.add_argument("--continue", dest="continues", action="store_true", help="adds to the results that are there")
    add_options(parser)
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        parser.error("--rounds takes at least 1")
    if not arguments.library.exists():
        parser.error(f"no library {arguments.library}; ninja -C build/dev bench.library builds one")
    return arguments


def print_plans(cases: list, library: Path, target: str) -> int:
    """1 where a case has no plan."""
    engine, failed = bench_plans.Engine(library, target), 0
    for case in cases:
        start = time.perf_counter()
        try:
            text = engine.plan(case).explain()
        except bench_plans.StofError as error:
            text, failed = f"FAILED: {error}\n", 1
        print(f"{case.text} ({(time.perf_counter() - start) * 1e3:.0f} ms)\n{text}", flush=True)
    return failed


def restart(arguments: argparse.Namespace, cases: list, deadline: float) -> None:
    """Measures the rest in a process of its own: once a kernel has failed, this one can launch none."""
    command = [sys.executable, *sys.argv, "--continue", "--cases", *(case.text for case in cases)]
    if arguments.budget_seconds is not None:
        command += ["--budget-seconds", str(max(0.0, deadline - time.monotonic()))]
    os.execv(sys.executable, command)


def print_row(row: dict) -> None:
    times = {"stof": row.get("stof_us", row.get("stof_ms")) if "failure" not in row else row["failure"], **row["peers"]}
    print(row["case"], f"ratio {row.get('ratio')}", f"error {row.get('error')}", row.get("kernel"), times, flush=True)


def measure(cases: list, arguments: argparse.Namespace, results: bench_results.Results, make_problem: Callable) -> int:
    """make_problem(case, arguments) gives a Problem. 1 where STOF failed on a case."""
    deadline = time.monotonic() + (arguments.budget_seconds if arguments.budget_seconds is not None else float("inf"))
    import bench_timing  # with PyTorch, whose start counts

    bench_timing.quiet()
    engine, timer = bench_plans.Engine(arguments.library), bench_timing.Timer(arguments.rounds)
    tuner = bench_plans.Engine(arguments.library, is_tuned=True) if arguments.tune else None
    if not arguments.continues:
        results.describe(**bench_timing.describe_machine(timer))
    for done, case in enumerate(cases):
        if time.monotonic() >= deadline:
            results.leave_out([left.text for left in cases[done:]])
            print(f"the time is up, left out: {' '.join(results.data['left_out'])}")
            break
        try:
            row = bench_timing.CaseRun(make_problem(case, arguments), results.unit).row(engine, tuner, timer)
        except Exception as error:  # such as too little memory; the other cases may fit
            row = bench_results.make_row(case.text, {}, {"stof": bench_results.one_line(error)}, results.unit, kind=case.kind)
        results.add(row)
        print_row(row)
        if not bench_timing.gpu_works() and cases[done + 1 :]:
            restart(arguments, cases[done + 1 :], deadline)
        bench_timing.tidy()
    else:
        results.describe(clocks_mhz_at_end=bench_timing.clocks_mhz())
    return int(any("failure" in row for row in results.data["rows"]))
