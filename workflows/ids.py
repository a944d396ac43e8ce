"""Identifiers that sort by the time they were made (UUID version 7)."""

import os
import time
import uuid


def uuid7() -> uuid.UUID:
    millis = time.time_ns() // 1_000_000
    random = int.from_bytes(os.urandom(10))
    return uuid.UUID(int=millis << 80 | 0x7000 << 64 | (random >> 68) << 64 | 0x8000 << 48 | random & (1 << 62) - 1)
