#!/usr/bin/python3
"""Write the seeds of the npy and safetensors fuzz tests, below corpus/ beside this file."""

import io
import json
import struct
from pathlib import Path

import numpy as np

CORPUS = Path(__file__).parent / "corpus"


def npy(array: np.ndarray, version: tuple[int, int] = (1, 0)) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, array, version)
    return file.getvalue()


def safetensors(header: dict, data: bytes) -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def entry(dtype: str, shape: list[int], begin: int, end: int) -> dict:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


SEEDS = {
    "npy/scalar": npy(np.float32(1.5)),
    "npy/empty": npy(np.zeros((0, 3), "<i8")),
    "npy/fortran": npy(np.asfortranarray(np.arange(6, dtype="<f2").reshape(2, 3))),
    "npy/version2": npy(np.arange(3, dtype="<i4"), (2, 0)),
    "npy/version3": npy(np.array([True, False]), (3, 0)),
    "npy/big_endian": npy(np.arange(2, dtype=">f4")),
    "npy/fields": npy(np.zeros(1, [("a", "<f4"), ("b", "|u1")])),
    "safetensors/empty": safetensors({}, b""),
    "safetensors/metadata": safetensors({"__metadata__": {"format": "pt"}}, b""),
    "safetensors/tensors": safetensors(
        {"a": entry("F32", [2], 0, 8), "b": entry("BF16", [1, 2], 8, 12), "c": entry("BOOL", [], 12, 13)}, bytes(13)
    ),
    "safetensors/misaligned": safetensors({"a": entry("U8", [1], 0, 1), "b": entry("I64", [1], 1, 9)}, bytes(9)),
    "safetensors/foreign": safetensors({"a": entry("F8_E4M3", [3], 0, 3), "b": entry("F16", [0, 7], 3, 3)}, bytes(3)),
}

for name, content in SEEDS.items():
    file = CORPUS / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
