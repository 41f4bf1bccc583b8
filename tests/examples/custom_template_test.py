"""Runs examples/04_custom_template: its template takes the place of the kernels that there were, and should be faster. Usage:
custom_template_test.py EXAMPLE TEMPLATES."""

import os
import re
import subprocess
import sys
import tempfile

example, templates = (os.path.abspath(path) for path in sys.argv[1:])
with tempfile.TemporaryDirectory() as cache:
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "STOF_CACHE_DIR": cache}
    output = subprocess.run([example, templates], check=True, capture_output=True, text=True, env=environment).stdout
plain, custom = output.split("with a template of one's own\n")


def launches(text: str) -> list[str]:
    return re.findall(r"^.*: (\S+), grid ", text, re.M)


def predicted_us(text: str) -> float:
    return sum(float(time) for time in re.findall(r"^  predicted [^:]*: ([\d.]+) us", text, re.M))


assert "norm/unit_rows.jinja" not in launches(plain) and len(launches(plain)) >= 2, output
assert launches(custom) == ["norm/unit_rows.jinja"], output
assert predicted_us(custom) < predicted_us(plain) / 1.5, output
