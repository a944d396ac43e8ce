"""Identifiers that sort by the time they were made (UUID version 7)."""

import os
import time
import uuid


def uuid7() -> uuid.UUID:
    """Its first 60 bits are time, to a quarter of a microsecond: two made one after the other sort that way."""
    millis, rest = divmod(time.time_ns(), 1_000_000)
    fraction = rest * 4096 // 1_000_000
    random = int.from_bytes(os.urandom(8)) >> 2
    return uuid.UUID(int=millis << 80 | (0x7000 | fraction) << 64 | 0x8000 << 48 | random)
