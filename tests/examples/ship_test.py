"""Runs examples/03_ship twice: only its very first build compiles. Usage: ship_test.py EXAMPLE."""

import os
import re
import subprocess
import sys
import tempfile


def counts(example: str, cache: str) -> list[tuple[int, int]]:
    """(compiled, found) of each line."""
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    output = subprocess.run([example, cache], check=True, capture_output=True, text=True, env=environment).stdout
    lines = re.findall(r"^([a-z ]+): (\d+) kernels compiled, (\d+) from the cache, [\d.]+ ms$", output, re.M)
    assert [line[0] for line in lines] == ["first run", "second run", "without a compiler"], output
    return [(int(compiled), int(found)) for _, compiled, found in lines]


with tempfile.TemporaryDirectory() as folder:
    example = os.path.abspath(sys.argv[1])
    (kernels, found), *later = counts(example, folder)
    assert kernels > 0 and found == 0, (kernels, found)
    assert later == [(0, kernels)] * 2, later
    assert counts(example, folder) == [(0, kernels)] * 3
