"""Writes arrays to a file of the format safetensors, which needs no torch to be read.

    write(path, {"layer.weight": array})

The file begins with the length of a header, as 8 bytes, little endian. The header is JSON: dtype,
shape and the place of the data of each array. Then the data follow.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

# The names of the format.
_NAMES = {
    "bool": "BOOL",
    "uint8": "U8",
    "int8": "I8",
    "uint16": "U16",
    "int16": "I16",
    "uint32": "U32",
    "int32": "I32",
    "uint64": "U64",
    "int64": "I64",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
    "float16": "F16",
    "bfloat16": "BF16",
    "float32": "F32",
    "float64": "F64",
    "complex64": "C64",
}


def write(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Writes arrays by name.

    Raises:
      TypeError: the format has no such dtype.
    """
    header: dict[str, Any] = {}
    end = 0
    for name, array in arrays.items():
        if array.dtype.name not in _NAMES:
            raise TypeError(f"safetensors has no dtype {array.dtype.name}, of {name}")
        start, end = end, end + array.nbytes
        header[name] = {
            "dtype": _NAMES[array.dtype.name],
            "shape": list(array.shape),
            "data_offsets": [start, end],
        }
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # The data are aligned.
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for array in arrays.values():
            file.write(np.ascontiguousarray(array).tobytes())
