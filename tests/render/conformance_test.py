"""Renders templates with this engine and with jinja2 and expects the same bytes, or a failure in both.

Usage: conformance_test.py DRIVER [--seed N] [--count N] [unittest options]
"""

import argparse
import json
import re
import subprocess
import sys
import unittest
import warnings
from pathlib import Path
from typing import Iterator, NamedTuple

import jinja2

sys.path.insert(0, str(Path(__file__).parent))
from template_generator import Generator  # noqa: E402

CORPUS = Path(__file__).parent / "corpus"
CONTEXT = json.loads((CORPUS / "context.json").read_text())

# What this engine refuses on purpose: templates/README.md, "Where it differs from jinja2".
REFUSALS = (
    "beyond 64-bit integers",
    "beyond 64 bits",
    "a 64-bit integer",
    "is complex",
    "no text of its own",
    "the number is beyond",
)


class Case(NamedTuple):
    name: str
    templates: dict[str, str]


def corpus() -> Iterator[Case]:
    for file in sorted(CORPUS.glob("*.lines")):
        for number, line in enumerate(file.read_text().split("\n"), 1):
            if line and not line.startswith("##"):
                yield Case(f"{file.name}:{number}", {"main": line.replace("⏎", "\n")})
    for file in sorted(CORPUS.glob("*.cases")):
        text = file.read_text().removesuffix("\n")
        for case in ("\n" + text).split("\n=== ")[1:]:
            name, _, body = case.partition("\n")
            main, *others = ("\n" + body).split("\n--- ")
            parts = dict(other.partition("\n")[::2] for other in others)
            yield Case(f"{file.name}: {name}", {"main": main.removeprefix("\n")} | parts)


def render_with_jinja2(templates: dict[str, str]) -> tuple[str | None, str]:
    """Give the text, or none and the error."""
    environment = jinja2.Environment(
        loader=jinja2.DictLoader(templates),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
    )
    context = json.loads(json.dumps(CONTEXT))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            text = environment.get_template("main").render(context)
        text.encode()
        return text, ""
    except Exception as error:  # any failure of a template counts
        return None, f"{type(error).__name__}: {error}"


class Driver:
    """The test program: one request at a time."""

    def __init__(self, program: str) -> None:
        self.program = program
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            [self.program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )

    def stop(self) -> int:
        with self.process:  # closes its pipes
            pass
        return self.process.returncode

    def render(self, templates: dict[str, str]) -> tuple[str | None, str]:
        request = {"main": "main", "templates": templates, "context": CONTEXT}
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            status = self.stop()
            self.start()
            return None, f"CRASH: the driver ended with status {status}"
        result = json.loads(answer)
        return result.get("text"), result.get("error", "")


class Difference(NamedTuple):
    kind: str  # a template is shrunk to a smaller one with a difference of the same kind
    text: str


def difference(driver: Driver, templates: dict[str, str]) -> Difference | None:
    """Say how the two engines differ, if they do."""
    ours, our_error = driver.render(templates)
    if our_error.startswith("CRASH"):
        return Difference("crash", our_error)
    if ours is None and any(refusal in our_error for refusal in REFUSALS):
        return None
    theirs, their_error = render_with_jinja2(templates)
    if ours == theirs:
        return None
    message = re.sub(r".*?:\d+:\d+: ", "", our_error).split("\n")[0]
    kind = f"{their_error.partition(':')[0]}/{message}"
    return Difference(
        kind, f"  jinja2: {their_error if theirs is None else repr(theirs)}\n  ours:   {our_error if ours is None else repr(ours)}"
    )


SHRINK_ATTEMPTS = 2000


def shrink(driver: Driver, templates: dict[str, str]) -> dict[str, str]:
    """Remove what the difference does not need, piece by piece."""
    kind = difference(driver, templates).kind
    attempts = 0
    for name in list(templates):
        size = max(len(templates[name]) // 2, 1)
        while size >= 1:
            start = 0
            while start < len(templates[name]) and attempts < SHRINK_ATTEMPTS:
                attempts += 1
                text = templates[name]
                smaller = templates | {name: text[:start] + text[start + size :]}
                found = difference(driver, smaller)
                if found and found.kind == kind:
                    templates = smaller
                else:
                    start += size
            size //= 2
    return templates


def report(templates: dict[str, str]) -> str:
    return "\n".join(f"  --- {name}\n{text}\n  ---" for name, text in templates.items())


class Conformance(unittest.TestCase):
    options: argparse.Namespace
    driver: Driver

    @classmethod
    def setUpClass(cls) -> None:
        cls.driver = Driver(cls.options.driver)

    @classmethod
    def tearDownClass(cls) -> None:
        cls.driver.stop()

    def test_corpus(self) -> None:
        cases = list(corpus())
        self.assertGreaterEqual(len(cases), 300)
        for case in cases:
            with self.subTest(case.name):
                found = difference(self.driver, case.templates)
                self.assertIsNone(found, f"{case.name}\n{found and found.text}\n{report(case.templates)}")

    def test_generated(self) -> None:
        seed, count = self.options.seed, self.options.count
        failures = 0
        for number in range(seed, seed + count):
            templates = Generator(number).templates()
            if difference(self.driver, templates) is None:
                continue
            smaller = shrink(self.driver, templates)
            failures += 1
            print(f"--seed {number} --count 1\n{difference(self.driver, smaller).text}\n{report(smaller)}")
            if failures >= self.options.failures:
                break
        self.assertEqual(failures, 0, "the templates above render otherwise with jinja2")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("driver")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=3000)
    parser.add_argument("--failures", type=int, default=3, help="stop after so many")
    Conformance.options, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
