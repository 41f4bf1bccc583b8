"""Holds the README to the files that it shows: its first program is the first example, its paths exist."""

import re
import unittest
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENTS = ["README.md", "CONTRIBUTING.md", "examples/README.md", "src/README.md", "templates/README.md"]


class Readme(unittest.TestCase):
    def test_the_first_program_is_the_first_example(self) -> None:
        program = re.search(r"```cpp\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
        self.assertEqual(program[1], (ROOT / "examples/01_quickstart/main.cpp").read_text())

    def test_links_lead_somewhere(self) -> None:
        for document in DOCUMENTS:
            text = (ROOT / document).read_text()
            links = [link for link in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in link]
            for link in links:
                with self.subTest(document=document, link=link):
                    self.assertTrue((ROOT / document).parent.joinpath(link).exists())

    def test_the_header_that_templates_are_taught_is_the_one_that_is_tested(self) -> None:
        taught = re.search(r"```json\n(.*?)```", (ROOT / "templates/README.md").read_text(), re.S)
        tested = (ROOT / "tests/contract/taught_header.json").read_text()
        self.assertEqual(taught[1], tested)


if __name__ == "__main__":
    unittest.main()
