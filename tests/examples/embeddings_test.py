"""Runs examples/05_embeddings beside the same model in float64 NumPy: a small one of random weights, and
all-MiniLM-L6-v2 where examples/05_embeddings/run has fetched it. Usage: embeddings_test.py EXAMPLE."""

import json
import math
import os
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np

EXAMPLE = os.path.abspath(sys.argv.pop(1))
ROOT = Path(__file__).parents[2]
FIXTURE = ROOT / "tests/examples/embeddings"
MODEL = ROOT / "build/all-minilm-l6-v2"
TINY = {"vocab_size": 0, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
        "max_position_embeddings": 48, "type_vocab_size": 2}

ERF_STEPS = 1024  # of 1 on the grid below
ERF_GRID = np.array([math.erf(i / ERF_STEPS) for i in range(-6 * ERF_STEPS, 6 * ERF_STEPS + 1)])


def erf(x: np.ndarray) -> np.ndarray:
    """To 1e-13: the value at the nearest point of a grid, and three terms of Taylor."""
    x = np.clip(x, -6, 6)
    nearest = np.rint(x * ERF_STEPS)
    a, h = nearest / ERF_STEPS, x - nearest / ERF_STEPS
    return ERF_GRID[nearest.astype(int) + 6 * ERF_STEPS] + 2 / math.sqrt(math.pi) * np.exp(-a * a) * (h - a * h**2 + (2 * a * a - 1) * h**3 / 3)


def read_lines(path: Path) -> list[str]:
    return path.read_bytes().decode().split("\n")[:-1]


def fixture_ids() -> list[list[int]]:
    """The tokens of each line, in the numbers of vocabulary.txt, with [CLS] and [SEP]."""
    return [[2, *map(int, line.split()), 3] for line in read_lines(FIXTURE / "ids.txt")]


def read_safetensors(path: Path) -> dict[str, np.ndarray]:
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        if entry["dtype"] == "F32":
            begin, end = (8 + length + offset for offset in entry["data_offsets"])
            tensors[name] = np.frombuffer(data[begin:end], np.float32).reshape(entry["shape"]).astype(np.float64)
    return tensors


def write_safetensors(path: Path, tensors: dict[str, np.ndarray]) -> None:
    header, data = {}, b""
    for name, array in tensors.items():
        header[name] = {"dtype": "F32", "shape": array.shape, "data_offsets": [len(data), len(data) + array.nbytes]}
        data += array.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def write_tiny_model(folder: Path) -> None:
    random = np.random.default_rng(7)
    vocabulary = (FIXTURE / "vocabulary.txt").read_bytes()
    config = {**TINY, "vocab_size": vocabulary.count(b"\n")}
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    shapes = {"embeddings.word_embeddings.weight": (config["vocab_size"], hidden),
              "embeddings.position_embeddings.weight": (config["max_position_embeddings"], hidden),
              "embeddings.token_type_embeddings.weight": (config["type_vocab_size"], hidden)}
    norms = ["embeddings.LayerNorm."]
    for i in range(config["num_hidden_layers"]):
        layer = f"encoder.layer.{i}."
        linears = {"attention.self.query.": (hidden, hidden), "attention.self.key.": (hidden, hidden), "attention.self.value.": (hidden, hidden),
                   "attention.output.dense.": (hidden, hidden), "intermediate.dense.": (inner, hidden), "output.dense.": (hidden, inner)}
        for name, shape in linears.items():
            shapes[layer + name + "weight"], shapes[layer + name + "bias"] = shape, shape[:1]
        norms += [layer + "attention.output.LayerNorm.", layer + "output.LayerNorm."]
    tensors = {name: random.normal(0, 0.2, shape).astype(np.float32) for name, shape in shapes.items()}
    for name in norms:
        tensors[name + "weight"] = random.normal(1, 0.1, hidden).astype(np.float32)
        tensors[name + "bias"] = random.normal(0, 0.1, hidden).astype(np.float32)
    write_safetensors(folder / "model.safetensors", tensors)
    (folder / "config.json").write_text(json.dumps(config, indent=2))
    (folder / "vocab.txt").write_bytes(vocabulary)


class Reference:
    """BERT and the mean of its tokens, one text at a time, by the definition."""

    def __init__(self, folder: Path) -> None:
        self.config = json.loads((folder / "config.json").read_text())
        self.weights = read_safetensors(folder / "model.safetensors")

    def linear(self, name: str, x: np.ndarray) -> np.ndarray:
        return x @ self.weights[name + "weight"].T + self.weights[name + "bias"]

    def norm(self, name: str, x: np.ndarray) -> np.ndarray:
        centred = x - x.mean(-1, keepdims=True)
        scale = np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12)
        return centred / scale * self.weights[name + "weight"] + self.weights[name + "bias"]

    def attention(self, name: str, x: np.ndarray) -> np.ndarray:
        heads = self.config["num_attention_heads"]
        q, k, v = (self.linear(name + part, x).reshape(len(x), heads, -1).swapaxes(0, 1) for part in ("query.", "key.", "value."))
        scores = q @ k.swapaxes(1, 2) / math.sqrt(q.shape[-1])
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        return (weights / weights.sum(-1, keepdims=True) @ v).swapaxes(0, 1).reshape(len(x), -1)

    def layer(self, name: str, x: np.ndarray) -> np.ndarray:
        context = self.attention(name + "attention.self.", x)
        x = self.norm(name + "attention.output.LayerNorm.", x + self.linear(name + "attention.output.dense.", context))
        inner = self.linear(name + "intermediate.dense.", x)
        inner = inner * (1 + erf(inner / math.sqrt(2))) / 2
        return self.norm(name + "output.LayerNorm.", x + self.linear(name + "output.dense.", inner))

    def embed(self, ids: list[int]) -> np.ndarray:
        most = min(256, self.config["max_position_embeddings"])
        if len(ids) > most:
            ids = ids[: most - 1] + ids[-1:]
        w = self.weights
        x = w["embeddings.word_embeddings.weight"][ids] + w["embeddings.position_embeddings.weight"][: len(ids)]
        x = self.norm("embeddings.LayerNorm.", x + w["embeddings.token_type_embeddings.weight"][0])
        for i in range(self.config["num_hidden_layers"]):
            x = self.layer(f"encoder.layer.{i}.", x)
        mean = x.mean(0)
        return mean / np.linalg.norm(mean)


class Embeddings(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_example(self, *arguments: object) -> subprocess.CompletedProcess:
        return subprocess.run([EXAMPLE, *map(str, arguments)], capture_output=True, env={**os.environ, "CUDA_VISIBLE_DEVICES": ""})

    def embed(self, model: Path, lines: list[str], width: int) -> tuple[np.ndarray, list[str]]:
        (self.folder / "texts.txt").write_bytes("".join(line + "\n" for line in lines).encode())
        result = self.run_example(model, self.folder / "texts.txt", self.folder / "rows.f32")
        self.assertEqual((result.returncode, result.stderr), (0, b""))
        rows = np.fromfile(self.folder / "rows.f32", np.float32).reshape(len(lines), width)
        return rows.astype(np.float64), result.stdout.decode().split("\n")[:-1]

    def assert_same(self, rows: np.ndarray, expected: np.ndarray, printed: list[str], lines: list[str]) -> None:
        cosines = (rows * expected).sum(1) / np.linalg.norm(rows, axis=1) / np.linalg.norm(expected, axis=1)
        self.assertGreaterEqual(cosines.min(), 0.999999)
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)
        likeness = expected @ expected.T
        np.fill_diagonal(likeness, -2)
        order = np.sort(likeness, 1)
        is_clear = order[:, -1] - order[:, -2] > 1e-6
        self.assertGreater(is_clear.mean(), 0.95)
        for i in np.flatnonzero(is_clear):
            nearest = likeness[i].argmax()
            self.assertEqual(printed[i], f"{rows[i] @ rows[nearest]:.4f}\t{lines[i]}\t{lines[nearest]}")

    def test_a_small_model(self) -> None:
        write_tiny_model(self.folder)
        ids, lines = fixture_ids(), read_lines(FIXTURE / "lines.txt")
        chosen = [*range(150), *(i for i, one in enumerate(ids) if len(one) > TINY["max_position_embeddings"]), lines.index("")]
        self.assertGreater(len(chosen), 155)  # some are cut, one is empty
        rows, printed = self.embed(self.folder, [lines[i] for i in chosen], TINY["hidden_size"])
        reference = Reference(self.folder)
        self.assert_same(rows, np.array([reference.embed(ids[i]) for i in chosen]), printed, [lines[i] for i in chosen])

    @unittest.skipUnless((MODEL / "model.safetensors").exists(), "examples/05_embeddings/run has not fetched the model")
    def test_the_real_model(self) -> None:
        count = 200
        tokens = read_lines(FIXTURE / "vocabulary.txt")
        numbers = {token: number for number, token in enumerate(read_lines(MODEL / "vocab.txt"))}
        lines = read_lines(FIXTURE / "lines.txt")[:count]
        rows, printed = self.embed(MODEL, lines, 384)
        reference = Reference(MODEL)
        expected = np.array([reference.embed([numbers[tokens[id]] for id in ids]) for ids in fixture_ids()[:count]])
        self.assert_same(rows, expected, printed, lines)

    def test_errors_name_the_file(self) -> None:
        self.assertEqual(self.run_example().returncode, 2)
        texts = self.folder / "texts.txt"
        texts.write_text("a\n")
        cases = [(self.folder / "none.txt", f"example: cannot open {self.folder}/none.txt\n"),
                 (texts, f"encoder: cannot read {self.folder}/config.json\n")]
        for path, message in cases:
            result = self.run_example(self.folder, path)
            self.assertEqual((result.returncode, result.stderr.decode()), (1, message))
        write_tiny_model(self.folder)
        (self.folder / "config.json").write_text('{"vocab_size": "many"}')
        result = self.run_example(self.folder, texts)
        self.assertEqual((result.returncode, result.stderr.decode()), (1, f'encoder: {self.folder}/config.json has no positive integer "vocab_size"\n'))


if __name__ == "__main__":
    unittest.main()
