"""Embeds files that a careless script would garble and expects a program to hold them byte for byte."""

import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).parents[2]

FILES = {
    "a/end_of_raw_string.jinja": ')STOF_TEXT" )" R"( )x"\n',
    "b_lists.cuh": "a;b;;c [x] ]] [[ ${NAMES} $ENV{HOME} @NAMES@ \\${x}\n",
    "c_escapes.jinja": '\\n \\" \\\\ ??/ \\\nnext "quoted" \'c\'\t\n\n',
    "d_no_newline.jinja": "int x",
    "e_empty.jinja": "",
    "f_large.cuh": "0123456789abcde\n" * 8192,
    "g_unicode.jinja": "é€😀\n",
}

PROGRAM = """\
#include <cstdio>
#include "render/embedded_templates.hpp"
int main() {
  for (const auto& [path, text] : stof::render::embedded_templates()) {
    std::printf("%zu %zu ", path.size(), text.size());
    std::fwrite(path.data(), 1, path.size(), stdout);
    std::fwrite(text.data(), 1, text.size(), stdout);
  }
}
"""


class EmbedFiles(unittest.TestCase):
    def test_texts_survive(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for name, text in FILES.items():
                (root / name).parent.mkdir(exist_ok=True)
                (root / name).write_bytes(text.encode())
            (root / "main.cpp").write_text(PROGRAM)
            names, script = ";".join(FILES), ROOT / "cmake/EmbedFiles.cmake"
            table = ["-DMODULE=render", "-DTYPE=EmbeddedTemplate", "-DTABLE=embedded_templates"]
            embed = ["cmake", f"-DDIRECTORY={root}", f"-DNAMES={names}", f"-DOUTPUT={root}/table.cpp", *table, "-P", script]
            build = ["c++", "-std=c++20", f"-I{ROOT}/src", root / "main.cpp", root / "table.cpp", "-o", root / "main"]
            for command in (embed, build):
                subprocess.run(command, check=True, capture_output=True)
            output = subprocess.run([root / "main"], check=True, capture_output=True).stdout
        expected = b""
        for name, text in FILES.items():
            expected += b"%d %d " % (len(name), len(text.encode())) + name.encode() + text.encode()
        self.assertEqual(output, expected)


if __name__ == "__main__":
    unittest.main()
