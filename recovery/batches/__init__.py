"""One act on everything that matches: settled at once, carried out in slices by any worker or the scheduler.

beginning  freezes which workflows, with the fence of each, in one statement; and stops a batch
carrying   takes item after item: its act, the audit of it, its result and the batch's count are one transaction
hands      a worker's look-out for batches, within about a second of the press

A runner that dies loses nothing: its last item is either wholly done or not begun, and the rest waits for the next
runner. Any number of runners share a batch, each item is locked by one of them. Once a stop is committed no item is.
An item whose fence has moved since the batch began is no longer what somebody agreed to: it is skipped and says so.
"""

from .beginning import MOST, begin, stop
from .carrying import VERBS, carry_on

__all__ = ["MOST", "VERBS", "begin", "carry_on", "stop"]
