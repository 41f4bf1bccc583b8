"""Holds the readers and writers of src/io to others: to NumPy's own for .npy, to a few lines of
struct and json for safetensors. Usage: convert_test.py CONVERT, the program of convert.cpp."""

import itertools
import json
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np

CONVERT = sys.argv.pop(1)
DTYPES = ["float16", "float32", "int32", "int64", "uint8", "bool"]
SHAPES = [(), (0,), (7,), (2, 3), (3, 0, 2), (2, 3, 4, 5), (1,) * 32]
NAMES = {"F16": np.float16, "BF16": np.uint16, "F32": np.float32, "I32": np.int32, "I64": np.int64, "U8": np.uint8, "BOOL": np.bool_}


def random_array(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Any bits, NaN and denormals among them; a bool is 0 or 1."""
    random = np.random.default_rng(len(shape))
    if dtype == "bool":
        return random.integers(0, 2, shape).astype(bool)
    count = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return np.frombuffer(random.bytes(count), dtype).reshape(shape)


def write_safetensors(path: Path, tensors: dict[str, tuple[str, np.ndarray]], metadata: dict[str, str], padding: str) -> None:
    header, data = {"__metadata__": metadata}, b""
    for name, (dtype, array) in tensors.items():
        begin, data = len(data), data + array.tobytes()
        header[name] = {"dtype": dtype, "shape": array.shape, "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode() + padding.encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def read_safetensors(path: Path) -> tuple[dict[str, tuple[str, np.ndarray]], dict[str, str]]:
    file = path.read_bytes()
    (length,) = struct.unpack("<Q", file[:8])
    header, data = json.loads(file[8 : 8 + length]), file[8 + length :]
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        array = np.frombuffer(data[begin:end], NAMES[entry["dtype"]]).reshape(entry["shape"])
        tensors[name] = (entry["dtype"], array)
    return tensors, metadata


class Convert(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def convert(self, *arguments: object) -> tuple[int, str]:
        result = subprocess.run([CONVERT, *map(str, arguments)], stdout=subprocess.PIPE, text=True)
        return result.returncode, result.stdout

    def assert_same(self, one: np.ndarray, other: np.ndarray) -> None:
        self.assertEqual((one.dtype, one.shape), (other.dtype, other.shape))
        self.assertEqual(one.tobytes(), other.tobytes())

    def test_npy_round_trip(self) -> None:
        source, target = self.folder / "in.npy", self.folder / "out.npy"
        for dtype, shape, order in itertools.product(DTYPES, SHAPES, "CF"):
            with self.subTest(dtype=dtype, shape=shape, order=order):
                array = random_array(dtype, shape)
                np.save(source, np.asarray(array, order=order))
                self.assertEqual(self.convert(source, target), (0, ""))
                self.assert_same(np.load(target), array)

    def test_npy_versions(self) -> None:
        source, target = self.folder / "in.npy", self.folder / "out.npy"
        array = random_array("float32", (2, 3))
        for version in [(1, 0), (2, 0), (3, 0)]:
            with self.subTest(version=version):
                with source.open("wb") as file:
                    np.lib.format.write_array(file, array, version)
                self.assertEqual(self.convert(source, target), (0, ""))
                self.assert_same(np.load(target), array)

    def test_npy_of_other_dtypes(self) -> None:
        source = self.folder / "in.npy"
        for array in [np.zeros(3, "<f8"), np.zeros(3, ">f4"), np.zeros(3, "<c8"), np.zeros(3, "<U4"), np.zeros(3, "<i2"), np.zeros(3, [("a", "<f4"), ("b", "<i4")])]:
            with self.subTest(dtype=array.dtype):
                np.save(source, array)
                code, text = self.convert(source, self.folder / "out.npy")
                self.assertEqual(code, 1)
                self.assertTrue(text.startswith(f"npy: {source}: "), text)
                if "a.astype(" in text:  # the advice works
                    name = text.split('a.astype("')[1].split('"')[0]
                    np.save(source, array.astype(name))
                    self.assertEqual(self.convert(source, self.folder / "out.npy"), (0, ""))

    def test_safetensors_round_trip(self) -> None:
        source, target = self.folder / "in.safetensors", self.folder / "out.safetensors"
        tensors = {}
        for (name, dtype), shape in itertools.product(NAMES.items(), SHAPES):
            tensors[f"{name} {shape} \"\\\u00f6"] = (name, random_array(np.dtype(dtype).name, shape))
        metadata = {"format": "pt", "\u00f6": '"\n'}
        for padding in ["", " ", "  ", "   "]:  # tensors at any alignment
            with self.subTest(padding=padding):
                write_safetensors(source, tensors, metadata, padding)
                self.assertEqual(self.convert(source, target), (0, ""))
                copies, copied_metadata = read_safetensors(target)
                self.assertEqual(copied_metadata, metadata)
                self.assertEqual(copies.keys(), tensors.keys())
                for name, (dtype, array) in tensors.items():
                    self.assertEqual(copies[name][0], dtype)
                    self.assert_same(copies[name][1], array)

    def test_bfloat16_travels_as_float32(self) -> None:
        source, target = self.folder / "in.safetensors", self.folder / "out.npy"
        bits = np.arange(65536, dtype=np.uint16)
        write_safetensors(source, {"w": ("BF16", bits)}, {}, "")
        self.assertEqual(self.convert(source, target, "w"), (0, ""))
        expected = (bits.astype(np.uint32) << 16).view(np.float32)
        actual = np.load(target)
        np.testing.assert_array_equal(actual, expected)
        numbers = ~np.isnan(expected)
        self.assertEqual(actual[numbers].tobytes(), expected[numbers].tobytes())


if __name__ == "__main__":
    unittest.main()
