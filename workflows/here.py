"""What this thread is busy with: `here.body` is the step's body that runs on it. `current()` and log lines read it."""

import threading

here = threading.local()
