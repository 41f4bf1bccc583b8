"""Runs the stof command as a user does: every subcommand, on good and bad input. Usage: stof_test.py
STOF, the program."""

import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree
import zlib
from pathlib import Path

import numpy as np

STOF = os.path.abspath(sys.argv.pop(1))

GRAPH = {
    "schema": 1, "name": "small", "dims": {"rows": {"min": 1, "max": 64}},
    "values": [
        {"name": "x", "role": "input", "dtype": "float16", "shape": ["rows", 8]},
        {"name": "w", "role": "weight", "dtype": "float16", "shape": [16, 8], "layout": "out_in"},
        {"name": "linear_2", "role": "result", "dtype": "float16", "shape": ["rows", 16]},
        {"name": "relu_3", "role": "result", "dtype": "float16", "shape": ["rows", 16]},
    ],
    "operators": [{"op": "linear", "inputs": [0, 1], "outputs": [2]}, {"op": "relu", "inputs": [2], "outputs": [3]}],
    "outputs": [{"name": "y", "value": 3}],
}

# What the template of examples/04_custom_template is for.
UNIT_ROWS = {
    "schema": 1, "name": "unit_rows", "dims": {},
    "values": [
        {"name": "x", "role": "input", "dtype": "float16", "shape": [3000, 1024]},
        {"name": "squares", "role": "result", "dtype": "float16", "shape": [3000, 1024]},
        {"name": "sums", "role": "result", "dtype": "float16", "shape": [3000, 1]},
        {"name": "lengths", "role": "result", "dtype": "float16", "shape": [3000, 1]},
        {"name": "units", "role": "result", "dtype": "float16", "shape": [3000, 1024]},
    ],
    "operators": [
        {"op": "multiply", "inputs": [0, 0], "outputs": [1]},
        {"op": "reduce_sum", "inputs": [1], "outputs": [2], "attributes": {"axis": 1, "keep_axis": True}},
        {"op": "sqrt", "inputs": [2], "outputs": [3]},
        {"op": "divide", "inputs": [0, 3], "outputs": [4]},
    ],
    "outputs": [{"name": "y", "value": 4}],
}


def read_png(data: bytes) -> np.ndarray:
    """Pixels [height, width, 3] of an 8-bit RGB picture, by the standard (PNG, third edition)."""
    position, width, height, packed = 8, 0, 0, b""
    while position < len(data):
        length, kind = struct.unpack(">I4s", data[position : position + 8])
        chunk = data[position + 8 : position + 8 + length]
        if kind == b"IHDR":
            width, height = struct.unpack(">II", chunk[:8])
        packed += chunk if kind == b"IDAT" else b""
        position += length + 12
    lines = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(height, 1 + 3 * width)
    pixels = np.zeros((height + 1, 3 * width + 3), np.int64)
    for y, line in enumerate(lines):
        for x, value in enumerate(line[1:], start=3):
            left, up, corner = pixels[y + 1, x - 3], pixels[y, x], pixels[y, x - 3]
            paeth = min((abs(up - corner), 0, left), (abs(left - corner), 1, up), (abs(left + up - 2 * corner), 2, corner))[2]
            pixels[y + 1, x] = (int(value) + [0, left, up, (left + up) // 2, paeth][line[0]]) % 256
    return pixels[1:, 3:].reshape(height, width, 3)


class Command(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.cache = self.folder / "cache"

    def stof(self, *arguments: object) -> subprocess.CompletedProcess:
        environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "STOF_CACHE_DIR": str(self.cache)}
        return subprocess.run([STOF, *map(str, arguments)], capture_output=True, text=True, cwd=self.folder, env=environment)

    def text(self, *arguments: object) -> str:
        result = self.stof(*arguments)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertNotIn("\x1b", result.stdout)
        return result.stdout

    def assert_fails(self, code: int, message: str, *arguments: object) -> None:
        result = self.stof(*arguments)
        self.assertEqual((result.returncode, result.stdout), (code, ""), result.stderr)
        self.assertTrue(result.stderr.startswith("stof: "), result.stderr)
        self.assertIn(message, result.stderr)

    def write_graph(self, graph: dict = GRAPH) -> Path:
        path = self.folder / "graph.json"
        path.write_text(json.dumps(graph))
        return path

    def write_weights(self) -> np.ndarray:
        w = np.random.default_rng(1).normal(size=(16, 8)).astype(np.float16)
        header = json.dumps({"w": {"dtype": "F16", "shape": [16, 8], "data_offsets": [0, w.nbytes]}}).encode()
        (self.folder / "w.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + w.tobytes())
        return w


class Usage(Command):
    def test_help_of_every_subcommand(self) -> None:
        overview = self.text("--help")
        self.assertIn("Exit codes:", overview)
        for name in ["run", "plan", "compile", "tune", "calibrate", "mask", "render", "template", "cache", "devices", "model", "bench"]:
            self.assertIn(name, overview)
            self.assertIn("Examples:", self.text(name, "--help"))
        self.assertIn("Examples:", self.text("bench", "model", "--help"))

    def test_wrong_command_lines(self) -> None:
        self.assert_fails(2, "A subcommand is required")
        self.assert_fails(2, "A subcommand is required; 'frobnicate' is not known", "frobnicate")
        self.assert_fails(2, "A subcommand is required; 'lst' is not known", "template", "lst")
        self.assert_fails(2, "GRAPH is required; '--grahp' is not known", "run", "--grahp")
        self.assert_fails(2, "GRAPH is required", "run")
        self.assert_fails(2, "--backend", "run", "g.json", "--backend", "tpu")
        self.assert_fails(2, "--target is required", "compile", "g.json")

    def test_an_option_takes_one_value(self) -> None:
        graph = self.write_graph()
        plan = json.loads(self.text("plan", "--target", "sm_90a", "--dim", "rows=5", graph, "--json"))
        self.assertEqual(plan["dims"], {"rows": 5})
        self.text("compile", "--target", "sm_90a", graph, "--dim", "rows=5")
        self.assert_fails(1, "nope: No such file", "template", "check", "--templates", "nope", "norm/softmax.jinja")
        self.text("template", "check", "--target", "sm_80", "embedding/embedding.jinja")

    def test_what_cannot_be_printed_is_an_error(self) -> None:
        for words in (["mask", "causal", "--length", "8"], ["--help"]):
            with open("/dev/full", "w") as full:
                result = subprocess.run([STOF, *words], stdout=full, stderr=subprocess.PIPE, text=True)
            self.assertEqual((result.returncode, result.stderr), (1, "stof: stdout: cannot write: No space left on device\n"))

    def test_version_and_devices(self) -> None:
        self.assertRegex(self.text("version"), r"^stof \d+\.\d+\.\d+, templates: \d+, GPUs: none")
        self.assertEqual(self.text("--version"), self.text("version"))
        self.assertEqual(self.text("devices"), "no GPU that this process may use\n")
        self.assertEqual(json.loads(self.text("devices", "--json")), [])
        profiles = {profile["id"]: profile for profile in json.loads(self.text("devices", "--profiles", "--json"))}
        self.assertEqual(profiles["h200"]["target"], "sm_90a")
        self.assertIn("NVIDIA H200", self.text("devices", "--profiles"))


class Run(Command):
    def complete(self, shell: str, *words: str) -> list[str]:
        """What bash offers for the last of the words."""
        script = self.text("completion", shell)
        script = script[script.index("_stof()") :]  # before it zsh learns what bash has
        line = " ".join(f"'{word}'" for word in ("stof", *words))
        command = f"{script}\nCOMP_WORDS=({line}) COMP_CWORD={len(words)}\n_stof\nprintf '%s\\n' \"${{COMPREPLY[@]}}\""
        return subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True).stdout.split()

    def test_shells_complete_it(self) -> None:
        self.assertEqual(self.complete("bash", "pl"), ["plan"])
        self.assertEqual(self.complete("zsh", "template", ""), ["list", "check", "--help", "--help-all"])
        self.assertEqual(self.complete("bash", "plan", "graph.json", "--js"), ["--json"])
        self.assertEqual(self.complete("bash", "bench", "model", "gpt2", "--ba"), ["--batch", "--backend"])
        self.assertEqual(self.complete("bash", "run", "graph"), [])  # files, which the shell knows
        self.assert_fails(2, "SHELL", "completion", "csh")

    def test_arrays_from_files_to_files(self) -> None:
        w = self.write_weights()
        x = np.random.default_rng(2).normal(size=(5, 8)).astype(np.float32)
        np.save(self.folder / "x.npy", x)
        common = ["run", self.write_graph(), "--weights", "w.safetensors", "--input", "x=x.npy"]
        self.assertEqual(self.text(*common, "--output", "y=y.npy"), "")
        y = np.load(self.folder / "y.npy")
        self.assertEqual((y.dtype, y.shape), (np.float16, (5, 16)))
        expected = np.maximum(x.astype(np.float16).astype(np.float64) @ w.T.astype(np.float64), 0)
        np.testing.assert_allclose(y, expected, rtol=1e-3)
        self.assertRegex(self.text(*common), r"^y: float16\[5, 16\], mean \S+, least 0, most \S+\n$")
        self.assertIn("reference backend", self.stof(*common, "--verbose").stderr)
        x[1] = np.inf
        np.save(self.folder / "x.npy", x)
        self.assertRegex(self.text(*common), r"^y: float16\[5, 16\], mean \d.*, least 0, most \d[^;]*; 1?\d are infinite or NaN\n$")

    def test_bad_input(self) -> None:
        self.write_weights()
        np.save(self.folder / "x.npy", np.zeros((5, 8), np.float32))
        np.save(self.folder / "bad.npy", np.zeros((5, 9), np.float32))
        graph = self.write_graph()
        common = ["run", graph, "--weights", "w.safetensors"]
        self.assert_fails(1, "cannot open none.json", "run", "none.json")
        self.assert_fails(1, "the graph has weights, such as 'w': --weights", "run", graph, "--input", "x=x.npy")
        self.assert_fails(1, "input 'x' float16[rows, 8] is missing: --input x=FILE.npy", *common)
        self.assert_fails(2, "--input 'x' is not NAME=VALUE", *common, "--input", "x")
        self.assert_fails(2, "--input x is given twice", *common, "--input", "x=x.npy", "--input", "x=x.npy")
        self.assert_fails(1, "no input is called 'z'", *common, "--input", "z=x.npy")
        self.assert_fails(1, "no output is called 'z'", *common, "--input", "x=x.npy", "--output", "z=z.npy")
        self.assert_fails(2, "'many' is no integer", *common, "--dim", "rows=many")
        self.assert_fails(1, "input 'x': upload: the tensor is float32[5, 9]", *common, "--input", "x=bad.npy")
        np.save(self.folder / "flat.npy", np.zeros(8, np.float32))
        np.save(self.folder / "long.npy", np.zeros((65, 8), np.float32))
        self.assert_fails(1, "input 'x': the array is float32[8], the graph takes float16[rows, 8]", *common, "--input", "x=flat.npy")
        self.assert_fails(1, "input 'x': dim: rows = 65 is outside [1, 64]", *common, "--input", "x=long.npy")
        self.assert_fails(1, "no dim is called 'row'", *common, "--input", "x=x.npy", "--dim", "row=5")
        self.assert_fails(4, "GPU 0 cannot be used", *common, "--input", "x=x.npy", "--backend", "gpu")
        (self.folder / "broken.json").write_text("{")
        self.assert_fails(1, "broken.json: ", "run", "broken.json")


class Tune(Command):
    RECORD = {"problem": {"operators": [{"op": "add"}]}, "config": {"kernel": "k", "parameters": {"tile": 64}},
              "result": {"time_us": 2.5, "kernel_key": "00", "when": "2026-01-01T00:00:00Z"}}

    def test_without_a_gpu(self) -> None:
        self.assert_fails(4, "GPU 0 cannot be used, and tuning is timing on one", "tune", self.write_graph())
        self.assert_fails(4, "GPU 0 cannot be used", "tune", self.write_graph(), "--quick", "--json")

    def test_wrong_command_lines(self) -> None:
        self.assert_fails(2, "--budget: '0' is no number above 0", "tune", "g.json", "--budget", "0")
        self.assert_fails(2, "--budget", "tune", "g.json", "--budget", "-1")
        self.assert_fails(2, "--budget", "tune", "g.json", "--budget", "soon")
        self.assert_fails(2, "--fastest: Value 0 not in range 1 to 1000000;", "tune", "--export", "r.jsonl", "--fastest", 0)
        self.assert_fails(2, "nothing to do", "tune")
        self.assert_fails(1, "cannot open none.json", "tune", "none.json")

    def test_records_travel(self) -> None:
        line = json.dumps(self.RECORD, separators=(",", ":"), sort_keys=True) + "\n"
        (self.folder / "there.jsonl").write_text(line)
        self.assertEqual(self.text("tune", "--import", "there.jsonl"), "there.jsonl: 1 of 1 records are new here\n")
        self.assertEqual(self.text("tune", "--import", "there.jsonl"), "there.jsonl: 0 of 1 records are new here\n")
        self.assertEqual(self.text("tune", "--export", "here.jsonl"), "here.jsonl: 1 records\n")
        self.assertEqual((self.folder / "here.jsonl").read_text(), line)
        self.assertEqual(self.text("tune", "--export", "best.jsonl", "--fastest", 1), "best.jsonl: 1 records\n")

    def test_records_that_are_none(self) -> None:
        (self.folder / "bad.jsonl").write_text("{}\n")
        self.assert_fails(1, "bad.jsonl: tuning records: line 1 is no object with problem, config and result", "tune", "--import", "bad.jsonl")
        self.assert_fails(1, "cannot open none.jsonl", "tune", "--import", "none.jsonl")


class PlanAndCompile(Command):
    def test_plan_of_the_reference_backend(self) -> None:
        graph = self.write_graph()
        self.assertIn("reference backend, model precision", self.text("plan", graph))
        plan = json.loads(self.text("plan", graph, "--json"))
        self.assertEqual((plan["graph"], plan["backend"], plan["precision"]), ("small", "reference", "model"))
        self.assertEqual(plan["inputs"], [{"name": "x", "dtype": "float16", "shape": ["rows", 8]}])
        self.assertEqual([len(plan["weights"]), plan["outputs"][0]["name"]], [1, "y"])
        self.assert_fails(1, "no dim is called 'row'", "plan", graph, "--dim", "row=5")
        self.assert_fails(2, "--dim rows is given twice", "plan", graph, "--dim", "rows=5", "--dim", "rows=6")
        for command in ("plan", "compile"):  # before anything is compiled
            for code, message, value in ((1, "--dim rows=65: it is not in [1, 64]", 65), (2, "'many' is no integer", "many")):
                self.assert_fails(code, message, command, graph, "--target", "sm_90a", "--dim", f"rows={value}")
                self.assertEqual(list(self.cache.rglob("*.stof")), [])
        self.assert_fails(1, "sm_1", "compile", graph, "--target", "sm_80", "--target", "sm_1", "--dim", "rows=5")
        self.assertEqual(list(self.cache.rglob("*.stof")), [])
        self.assert_fails(2, "--device-profile 'h200' goes with --target", "plan", graph, "--device-profile", "h200")

    def test_compile_then_plan_from_the_cache(self) -> None:
        graph = self.write_graph()
        compile = ["compile", graph, "--target", "sm_80", "--target", "sm_90a", "--dim", "rows=5"]
        first = self.text(*compile).splitlines()
        self.assertEqual([line.split(":")[0] for line in first], ["sm_80 (a100)", "sm_90a (h100)", "sm_90a (h200)", "cache"])
        self.assertRegex(first[0], r"^sm_80 \(a100\): [1-9]\d* kernels compiled in \d+ ms, ")
        for line in self.text(*compile).splitlines()[:3]:
            self.assertRegex(line, r": 0 kernels compiled in 0 ms, [1-9]\d* found in the cache$")
        plan = json.loads(self.text("plan", graph, "--target", "sm_90a", "--dim", "rows=5", "--json"))
        self.assertEqual((plan["backend"], plan["target"], plan["dims"]), ("gpu", "sm_90a", {"rows": 5}))
        self.assertEqual(plan["kernels"], len({launch["template"] for launch in plan["launches"]}))
        self.assertTrue(plan["launches"][0]["template"].startswith("matmul/"))
        self.assertIn(plan["launches"][0]["template"], self.text("plan", graph, "--target", "sm_90a", "--dim", "rows=5"))

        self.text("plan", graph, "--target", "sm_90a", "--dim", "rows=5", "--svg", "plan.svg")
        picture = ElementTree.parse(self.folder / "plan.svg").getroot()
        words = [text.text for text in picture.iter("{http://www.w3.org/2000/svg}text")]
        self.assertIn(plan["launches"][0]["template"], words)
        self.assertIn(f"{plan['launches'][0]['predicted_us']:.1f} us", words)
        self.assert_fails(1, "the reference backend launches no kernels", "plan", graph, "--backend", "reference", "--svg", "none.svg")
        self.assertFalse((self.folder / "none.svg").exists())

        (self.folder / "file").write_text("")
        unkept = "file is not a folder; nothing would be kept"
        self.assert_fails(1, unkept, *compile, "--cache-dir", "file")
        self.assert_fails(1, unkept, "compile", "none.json", "--target", "sm_80", "--cache-dir", "file")  # before anything
        for option in "--target", "--device-profile", "--cache-dir", "--templates":
            self.assert_fails(2, f"{option}: it is empty", "plan", graph, option, "")
        self.assert_fails(2, "GRAPH: it is empty", "plan", "")

        self.assertEqual(self.text("cache", "path"), f"{self.cache}\n")
        items = json.loads(self.text("cache", "ls", "--json"))
        self.assertEqual({item["kind"] for item in items}, {"kernel", "plan", "rendering"})
        self.assertEqual(len(self.text("cache", "ls").splitlines()), len(items))
        self.assertEqual(self.text("cache", "verify"), f"{len(items)} entries, 0 damaged\n")
        self.assertEqual(json.loads(self.text("cache", "verify", "--json")), {"entries": len(items), "damaged": []})
        rendering = next(item for item in items if item["kind"] == "rendering")
        kernel = next(item for item in items if item["kind"] == "kernel")
        self.assertIn("  template: matmul/", self.text("cache", "explain", rendering["digest"]))
        chosen = next(item for item in items if item["kind"] == "plan")
        self.assertIn('"scheme"', self.text("cache", "explain", chosen["digest"]))
        fields = {field["field"]: field["bytes"] for field in json.loads(self.text("cache", "explain", kernel["digest"], "--json"))["key"]}
        self.assertIn("__global__", fields["source"])
        self.assertIn(fields["architecture"], ["sm_80", "sm_90a"])
        self.assert_fails(1, "no entries begin with 'zz'", "cache", "explain", "zz")
        self.assert_fails(1, "cache: there is no folder none", "cache", "verify", "--cache-dir", "none")

        Path(kernel["path"]).write_bytes(Path(kernel["path"]).read_bytes()[:-1])
        result = self.stof("cache", "verify")
        self.assertEqual(result.returncode, 1)
        self.assertIn(f"{kernel['path']}: ", result.stdout)
        self.assertIn(f"{len(items)} entries, 1 damaged\n", result.stdout)
        result = self.stof("cache", "verify", "--json")
        self.assertEqual(result.returncode, 1)
        damaged = json.loads(result.stdout)["damaged"]
        self.assertEqual([one["path"] for one in damaged], [kernel["path"]])
        self.assertTrue(damaged[0]["fault"])

    def test_bad_targets(self) -> None:
        graph = self.write_graph()
        self.assert_fails(1, "sm_70", "compile", graph, "--target", "sm_70")
        self.assert_fails(1, "target sm_90 leaves out what the kernels", "compile", graph, "--target", "sm_90")
        self.assert_fails(1, "a200", "compile", graph, "--target", "sm_80", "--device-profile", "a200")
        self.assert_fails(4, "GPU 0 cannot be used", "plan", graph, "--backend", "gpu")


class Mask(Command):
    def test_numbers(self) -> None:
        mask = json.loads(self.text("mask", "causal && k_pos >= 0", "--length", 128, "--json"))
        self.assertEqual((mask["tiles"], mask["full_tiles"], mask["part_tiles"], mask["empty_tiles"]), (4, 1, 2, 1))
        self.assertAlmostEqual(mask["density"], 129 / 256)
        self.assertEqual((mask["keys_per_row"]["min"], mask["keys_per_row"]["max"]), (1, 128))
        text = self.text("mask", "causal", "--q-len", 64, "--kv-len", 128)
        self.assertIn("class     interval_rows\n", text)
        self.assertIn("extent    q_len 64, kv_len 128, planes 1\n", text)

    def test_an_array_and_its_pictures(self) -> None:
        keep = np.random.default_rng(3).random((2, 1, 70, 130)) < 0.3
        keep[:, :, :, 64:] = False
        np.save(self.folder / "keep.npy", keep)
        mask = json.loads(self.text("mask", "keep.npy", "--json", "--png", "m.png", "--svg", "m.svg", "--plane", 1))
        self.assertAlmostEqual(mask["density"], keep.mean())
        self.assertEqual((mask["planes"], mask["extent"]["batch"]), (2, 2))
        pixels = read_png((self.folder / "m.png").read_bytes())
        self.assertEqual(pixels.shape, (70, 130, 3))
        np.testing.assert_array_equal((pixels == [217, 112, 38]).all(-1), keep[1, 0])
        np.testing.assert_array_equal(pixels[:, 64:], np.broadcast_to([245, 246, 248], (70, 66, 3)))
        svg = (self.folder / "m.svg").read_text()
        self.assertIn('viewBox="0 0 130 70"', svg)
        self.assertIn("<title>", svg)

    def test_bad_masks(self) -> None:
        self.assert_fails(2, "--length", "mask", "causal")
        self.assert_fails(2, "--plane requires --png or --svg", "mask", "causal", "--length", 8, "--plane", 1)
        self.assert_fails(2, "'m.svg' does not end in .png", "mask", "causal", "--length", 8, "--png", "m.svg")
        self.assert_fails(1, "column 8", "mask", "k_pos <", "--length", 8)
        self.assert_fails(1, "frob is not defined", "mask", "frob", "--length", 8)
        self.assert_fails(1, "strided(stride) takes 1 arguments, has 0", "mask", "strided", "--length", 8)
        self.assert_fails(1, "cannot open none.npy", "mask", "none.npy")
        self.assert_fails(1, "q_len -8 is not in 1 to", "mask", "causal", "--length", -8)
        self.assert_fails(1, "q_len 0 is not in 1 to", "mask", "causal", "--length", 0)
        self.assert_fails(1, "kv_len 0 is not in 1 to", "mask", "causal", "--length", 8, "--kv-len", 0)
        self.assert_fails(1, "no power of two", "mask", "causal", "--length", 8, "--png", "m.png", "--cell", 3)
        self.assert_fails(1, "a cell of -64 pairs is no power of two", "mask", "causal", "--length", 8, "--png", "m.png", "--cell", -64)
        self.assert_fails(1, "plane 1 is not in 0 to 0", "mask", "causal", "--length", 8, "--png", "m.png", "--plane", 1)
        self.assert_fails(1, "file: ", "mask", "causal", "--length", 8, "--png", "none/m.png")


class Templates(Command):
    def test_render(self) -> None:
        source = self.text("render", "norm/softmax.jinja")
        self.assertIn('extern "C" __global__', source)
        variables = self.text("render", "norm/softmax.jinja", "--print-variables")
        (self.folder / "v.json").write_text(variables)
        self.assertEqual(self.text("render", "norm/softmax.jinja", "--variables", "v.json", "--output", "s.cu"), "")
        self.assertEqual((self.folder / "s.cu").read_text(), source)

    def test_a_folder_of_ones_own(self) -> None:
        (self.folder / "mine").mkdir()
        (self.folder / "mine/hello.jinja").write_text("hello {{ name }}\n")
        (self.folder / "v.json").write_text('{"name": "you"}')
        arguments = ["--templates", "mine", "--variables", "v.json"]
        self.assertEqual(self.text("render", "hello.jinja", *arguments), "hello you\n")
        for path in ("mine/hello.jinja", "./mine/hello.jinja", self.folder / "mine/hello.jinja"):
            self.assertEqual(self.text("render", path, *arguments), "hello you\n")
        self.assert_fails(1, "those that there are, --templates FOLDER adds the folder of a file", "render", "mine/hello.jinja")
        (self.folder / "v.json").write_text("{}")
        self.assert_fails(3, "hello.jinja:1:10: ", "render", "hello.jinja", *arguments)
        (self.folder / "v.json").write_text("{")
        self.assert_fails(1, "v.json: this is no JSON\n", "render", "hello.jinja", *arguments)
        (self.folder / "v.json").write_text("[]")
        self.assert_fails(1, "v.json: this is no JSON object\n", "render", "hello.jinja", *arguments)
        self.assert_fails(1, "there is no template 'none.jinja'", "render", "none.jinja")
        self.assert_fails(1, "device.sm >= 90 && device.sm < 100 does not hold", "render", "matmul/gemm_sm90.jinja", "--target", "sm_80")

    def test_list_and_check(self) -> None:
        files = [one["file"] for one in json.loads(self.text("template", "list", "--json"))]
        self.assertIn("norm/softmax.jinja", files)
        self.assertEqual([line.split()[0] for line in self.text("template", "list").splitlines()], files)
        text = self.text("template", "check", "embedding/embedding.jinja", "--target", "sm_80")
        self.assertRegex(text, r"contract +passed.*\n  render +passed.*\n  compile +passed.*\n  resources +passed")
        self.assertRegex(text, r"numerics +left out +there is no GPU\n  repeatability +left out.*\n  race +left out")

        original = self.text("render", "embedding/embedding.jinja")  # is a file of the library
        self.assertIn("__global__", original)
        (self.folder / "mine").mkdir()
        (self.folder / "mine/bad.jinja").write_text('{#\n{ "contract": 1, "name": "bad" }\n#}\n')
        result = self.stof("template", "check", "bad.jinja", "--templates", "mine")
        self.assertEqual((result.returncode, result.stderr), (3, ""))
        self.assertRegex(result.stdout, r"bad.jinja\n  contract +FAILED +bad.jinja:2:")
        checks = json.loads(self.stof("template", "check", "bad.jinja", "--templates", "mine", "--json").stdout)
        self.assertEqual([checks[0]["passed"], len(checks[0]["rungs"]), checks[0]["left_out"]], [False, 1, []])
        self.assert_fails(3, "bad.jinja:2:", "template", "list", "--templates", "mine")


    def test_compiling_with_templates_of_ones_own(self) -> None:
        graph = self.folder / "unit_rows.json"
        graph.write_text(json.dumps(UNIT_ROWS))
        shutil.copytree(Path(__file__).parents[2] / "examples/04_custom_template/templates", self.folder / "mine")
        compile = ["compile", graph, "--target", "sm_90a", "--device-profile", "h200", "--templates", "mine"]
        result = self.stof(*compile)
        self.assertEqual((result.returncode, result.stderr), (0, "stof: norm/unit_rows.jinja: its numbers were not checked, `stof template check` does on a GPU\n"))
        (self.folder / "mine/norm/unit_rows.jinja").write_text("__global__ void nothing() {}\n")
        result = self.stof(*compile)
        self.assertEqual((result.returncode, result.stderr), (3, "stof: norm/unit_rows.jinja is in quarantine: contract: it has no header, '{#', a JSON object and '#}', and no template includes it\n"))
        self.assertIn(" kernels compiled in ", result.stdout)


    def test_bytes_that_are_no_text(self) -> None:
        (self.folder / "mine").mkdir()
        (self.folder / "mine/a\udcff.jinja").write_bytes(b'{#\n{ "contract": 1, "\xff": 2 }\n#}\n')
        self.assertEqual(self.stof("template", "check", "--templates", "mine", "--json", "--no-gpu", "a\udcff.jinja").returncode, 3)
        self.assertIn("\ufffd", self.text("plan", self.write_graph(), "--target", "sm_90a", "--templates", "mine", "--json"))

    def test_records_that_cannot_be_kept(self) -> None:
        (self.folder / "file").write_text("")
        (self.folder / "r.jsonl").write_text("")
        self.assert_fails(1, "file is not a folder; nothing would be kept", "tune", "--import", "r.jsonl", "--cache-dir", "file")


class Bench(Command):
    def test_there_is_nothing_to_calibrate_without_a_gpu(self) -> None:
        self.assert_fails(4, "GPU 0 cannot be used, and calibration is timing on one", "calibrate")

    def test_a_model_is_timed(self) -> None:
        arguments = ("vit-base", "--layers", 1, "--seq", 5, "--backend", "reference", "--runs", 3)
        timed = json.loads(self.text("bench", "model", *arguments, "--mask", "sliding_window(1, 1)", "--json"))
        self.assertEqual([timed[name] for name in ("model", "batch", "sequence", "backend", "runs")], ["vit-base", 1, 5, "reference", 3])
        self.assertEqual(timed["mask"], "q_pos - k_pos <= 1 && k_pos - q_pos <= 1")
        self.assertLess(0, timed["least_ms"])
        self.assertLessEqual(timed["least_ms"], timed["median_ms"])
        self.assertLessEqual(timed["median_ms"], timed["most_ms"])
        once = self.stof("bench", "model", *arguments[:5], "--json")
        self.assertEqual((once.returncode, json.loads(once.stdout)["runs"]), (0, 1))
        self.assertEqual(once.stderr, "stof: there is no GPU: 1 run on the CPU, which may take minutes\n")
        self.assertRegex(self.text("bench", "model", *arguments), r"^vit-base \(1, 5\), float16, on the CPU by the reference backend: \d+\.\d+ ms a run .* of 3\)\nbuilt in (?!0\.00 )\d+\.\d\d ms, ")

    def test_a_model_is_written(self) -> None:
        model = ("model", "vit-base", "--layers", 1, "--seq", 5, "--batch", 2)
        self.text(*model, "--output", "vit.json")
        self.assertEqual(json.loads(self.text(*model)), json.loads((self.folder / "vit.json").read_text()))
        image = json.loads(self.text("model", "vit-base", "--layers", 1))
        self.assertEqual(image["values"][0]["shape"], [1, 3, 224, 224])
        plan = json.loads(self.text("plan", "vit.json", "--backend", "reference", "--json"))
        self.assertEqual(plan["inputs"], [{"name": "pixels", "dtype": "float16", "shape": [2, 3, 32, 32]}])
        masked = ("model", "gpt2", "--layers", 1, "--seq", 8, "--mask", "documents(0, 3, 8)", "--output", "gpt2.json")
        self.assert_fails(1, "gpt2.json: the graph has 1 tensors of masks or tables, and no file", *masked)
        self.assert_fails(1, "the mask has data, and --output and --data say", *masked[:-2])
        self.text(*masked, "--data", "gpt2.safetensors")
        self.assert_fails(1, ", which --data FILE.safetensors gives", "plan", "gpt2.json", "--backend", "reference")
        self.assertIn("attention", self.text("plan", "gpt2.json", "--data", "gpt2.safetensors", "--backend", "reference"))
        self.write_weights()
        self.assert_fails(1, " in w.safetensors", "plan", "gpt2.json", "--data", "w.safetensors", "--backend", "reference")

    def test_bad_models(self) -> None:
        bench = ("bench", "model", "--backend", "reference")
        self.assert_fails(1, "model: none is called 'bert', there is bert-base, ", *bench, "bert")
        self.assert_fails(1, "vit-base: 6 tokens are not a class token and a square of patches", *bench, "vit-base", "--seq", 6)
        self.assert_fails(1, "--dtype 'int32' is no float type", *bench, "gpt2", "--dtype", "int32")
        self.assert_fails(1, "model: layers is 99, bert-base has 12", *bench, "bert-base", "--layers", 99)
        self.assert_fails(1, "causa is no function", *bench, "gpt2", "--mask", "causa(1)")
        self.assert_fails(2, "--runs", *bench, "gpt2", "--runs", 0)
        self.assert_fails(1, "none.safetensors", *bench, "vit-base", "--seq", 5, "--layers", 1, "--weights", "none.safetensors")


if __name__ == "__main__":
    unittest.main()
