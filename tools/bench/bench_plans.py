"""The plans of libstof_bench.so, for tensors that the caller owns. Needs no PyTorch."""

import ctypes
from pathlib import Path

from bench_results import AttentionCase, FusionCase, ModelCase

DEFAULT_LIBRARY = Path(__file__).parents[2] / "build/dev/tools/bench/libstof_bench.so"


class StofError(Exception):
    pass


class AttentionShape(ctypes.Structure):
    _fields_ = [
        ("mask", ctypes.c_char_p),
        ("score", ctypes.c_char_p),
        ("form", ctypes.c_char_p),
        ("dtype", ctypes.c_char_p),
        ("batch", ctypes.c_int64),
        ("heads", ctypes.c_int64),
        ("kv_heads", ctypes.c_int64),
        ("q_len", ctypes.c_int64),
        ("kv_len", ctypes.c_int64),
        ("head_dim", ctypes.c_int64),
    ]


class NamedMemory(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("data", ctypes.c_void_p), ("size_bytes", ctypes.c_int64)]


HANDLE = ctypes.c_void_p
SIGNATURES = {
    "error": (ctypes.c_char_p, []),
    "open": (HANDLE, [ctypes.c_char_p, ctypes.c_bool]),
    "close": (None, [HANDLE]),
    "attention": (HANDLE, [HANDLE, ctypes.POINTER(AttentionShape)]),
    "fusion": (HANDLE, [HANDLE, ctypes.c_char_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_char_p]),
    "model": (HANDLE, [HANDLE, ctypes.c_char_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_char_p, ctypes.c_char_p]),
    "weights": (ctypes.c_bool, [HANDLE, ctypes.POINTER(NamedMemory), ctypes.c_int]),
    "workspace_bytes": (ctypes.c_int64, [HANDLE]),
    "destroy": (None, [HANDLE]),
    "explain": (ctypes.c_char_p, [HANDLE]),
    "bind": (ctypes.c_bool, [HANDLE, ctypes.POINTER(NamedMemory), ctypes.c_int]),
    "launch": (ctypes.c_bool, [HANDLE, ctypes.c_void_p]),
    "layout_ms": (ctypes.c_double, [HANDLE]),
}


class Engine:
    """For the current GPU, or for a target such as sm_90a, whose plans can be explained alone."""

    def __init__(self, library: Path, target: str = "", is_tuned: bool = False):
        self.library = library
        shared = ctypes.CDLL(str(library.resolve()))
        self.calls = {}
        for name, (result, arguments) in SIGNATURES.items():
            call = getattr(shared, f"stof_bench_{name}")
            call.restype, call.argtypes = result, arguments
            self.calls[name] = call
        self.handle = self.check(self.calls["open"](target.encode(), is_tuned))

    def __del__(self):
        if getattr(self, "handle", None):
            self.calls["close"](self.handle)

    def check(self, result):
        if not result:
            raise StofError(self.calls["error"]().decode())
        return result

    def plan(self, case: AttentionCase | FusionCase | ModelCase) -> "Plan":
        if isinstance(case, ModelCase):
            model, mask = case.model.removesuffix("-4layers"), case.mask.encode() if case.mask else None
            handle = self.calls["model"](self.handle, model.encode(), case.batch, case.tokens, case.layers, mask, case.dtype.encode())
        elif isinstance(case, FusionCase):
            handle = self.calls["fusion"](self.handle, case.group.encode(), case.tokens, case.hidden, case.dtype.encode())
        else:
            shape = {name: value.encode() if isinstance(value, str) else value for name, value in case.shape.items()}
            handle = self.calls["attention"](self.handle, ctypes.byref(AttentionShape(**shape)))
        return Plan(self, self.check(handle))


class Plan:
    def __init__(self, engine: Engine, handle):
        self.engine, self.handle, self.tensors = engine, handle, {}

    def __del__(self):
        self.engine.calls["destroy"](self.handle)

    def explain(self) -> str:
        return self.engine.calls["explain"](self.handle).decode()

    def bind(self, tensors: dict) -> None:
        """Contiguous tensors of the GPU by name, inputs and outputs; they are kept alive."""
        self.tensors = tensors
        self.call_with(tensors, "bind")

    def load_weights(self, tensors: dict) -> None:
        """Contiguous tensors of the host by name; they are copied."""
        self.call_with(tensors, "weights")

    def call_with(self, tensors: dict, name: str) -> None:
        memory = [NamedMemory(name.encode(), tensor.data_ptr(), tensor.numel() * tensor.element_size()) for name, tensor in tensors.items()]
        self.engine.check(self.engine.calls[name](self.handle, (NamedMemory * len(memory))(*memory), len(memory)))

    def workspace_bytes(self) -> int:
        return self.engine.calls["workspace_bytes"](self.handle)

    def launch(self, stream: int) -> None:
        self.engine.check(self.engine.calls["launch"](self.handle, stream))

    def layout_ms(self) -> float | None:
        time_ms = self.engine.calls["layout_ms"](self.handle)
        return round(time_ms, 4) if time_ms >= 0 else None
