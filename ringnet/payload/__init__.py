"""What the numbers are: sources, element types, reductions, and chunks that are frozen once sent."""

from __future__ import annotations

from ringnet.payload.buffers import PackedPayload, Payload, SwitchSums, payload_bytes, payload_text
from ringnet.payload.dtypes import DTYPES, dtype_of, is_float
from ringnet.payload.files import ArraySource, FileSource
from ringnet.payload.reductions import REDUCTIONS, Reduction, check_dtype, make_reduction
from ringnet.payload.sources import RampSource, RandomSource, Source, message_elements

__all__ = [
    "DTYPES",
    "REDUCTIONS",
    "ArraySource",
    "FileSource",
    "PackedPayload",
    "Payload",
    "RampSource",
    "RandomSource",
    "Reduction",
    "Source",
    "SwitchSums",
    "check_dtype",
    "dtype_of",
    "is_float",
    "make_reduction",
    "message_elements",
    "payload_bytes",
    "payload_text",
]
