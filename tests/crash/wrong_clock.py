"""Named as a module of workflows, this puts its process's clock and host name wrong, before anything runs."""

import os
import socket
import time
from datetime import UTC, datetime, timedelta

from django.utils import timezone

off = float(os.environ["CLOCK_OFF"])
right = time.time

time.time = lambda: right() + off
timezone.now = lambda: datetime.now(UTC) + timedelta(seconds=off)
socket.gethostname = lambda: "the-same-for-all"
