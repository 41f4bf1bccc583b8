"""Runs tools/check with a cmake that only notes what it is asked for, and fails where it is told to."""

import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

TOOL = Path(__file__).parents[2] / "tools/check"
PARTS = ["check", "tidy", "asan", "fuzz"] + ["gpu"] * Path("/dev/nvidiactl").exists()

CMAKE = """\
#!/bin/sh
echo "cmake $*"
[ "$3" != "$FAILING_PART" ]
"""


class Check(unittest.TestCase):
    def run_tool(self, *arguments: str, failing_part: str = "", setup: str = 'echo "setup $*"') -> tuple[int, list[str]]:
        with tempfile.TemporaryDirectory() as root:
            for name, text in {"bin/cmake": CMAKE, "tools/setup.sh": setup}.items():
                Path(root, name).parent.mkdir()
                Path(root, name).write_text(text)
            Path(root, "bin/cmake").chmod(0o755)
            shutil.copy(TOOL, Path(root, "tools/check"))
            environment = {"PATH": f"{root}/bin:/usr/bin:/bin", "FAILING_PART": failing_part}
            command = [Path(root, "tools/check"), *arguments]
            result = subprocess.run(command, capture_output=True, text=True, env=environment)
            self.assertEqual(result.stderr, "")
            return result.returncode, re.sub(r"\d+ s$", "N s", result.stdout, flags=re.M).splitlines()

    def test_every_part_is_announced_and_runs(self) -> None:
        expected = ["setup --no-install"]
        for part in PARTS:
            expected += [f"=== tools/check: {part}", f"cmake --workflow --preset {part}", f"=== tools/check: {part} passed in N s"]
        self.assertEqual(self.run_tool("--no-install"), (0, expected))

    def test_a_part_that_fails_is_the_last(self) -> None:
        for part in PARTS:
            with self.subTest(part=part):
                code, lines = self.run_tool(failing_part=part)
                self.assertEqual((code, lines[-1]), (1, f"=== tools/check: {part} FAILED after N s"))
                self.assertEqual(lines[-2], f"cmake --workflow --preset {part}")

    def test_without_what_it_needs_nothing_runs(self) -> None:
        self.assertEqual(self.run_tool(setup="false"), (1, []))

    def test_an_option_that_there_is_not_is_named(self) -> None:
        result = subprocess.run([TOOL.with_name("setup.sh"), "--no-instal"], capture_output=True, text=True)
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertEqual(result.stderr, "unknown options: --no-instal; there is --no-install\n")


if __name__ == "__main__":
    unittest.main()
