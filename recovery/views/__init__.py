"""The operator's pages. A view asks for a permission, calls one query or one verb, and draws one partial.

door       who may come in, and what every answer carries
errors     when something is wrong
frame      what surrounds every page, as far as it lives
overview   how things are
workflows  the list, and the same as CSV and JSON lines
saved      lists that people keep
workflow   one of them
ask        the dialog before an act, and the act
matching   the same for several, or for everything that matches
batches    acts on many: progress, results, stop
notes      a line for whoever comes next
name       all of one name
recovery   every rescue
workers    who works
demo       something to look at, where there is nothing yet
kill       ends one of them, in the demo
audit      who did what
charts     figures, tables, CSV
health     for load balancers
"""

from .ask import ask
from .audit import audit, audit_csv
from .batches import batch, batch_csv, batches, stop_batch
from .charts import chart
from .demo import start_demo
from .frame import rail
from .health import healthz
from .kill import kill
from .matching import ask_many
from .name import name
from .notes import notes
from .overview import overview
from .recovery import change_mode, change_rule, recovery, sweep
from .saved import keep_view, saved_view
from .workers import workers
from .workflow import payload, workflow
from .workflows import behind, workflows, workflows_csv, workflows_jsonl

__all__ = [
    "ask",
    "ask_many",
    "audit",
    "audit_csv",
    "batch",
    "batch_csv",
    "batches",
    "behind",
    "change_mode",
    "change_rule",
    "chart",
    "healthz",
    "keep_view",
    "kill",
    "name",
    "notes",
    "overview",
    "payload",
    "rail",
    "recovery",
    "saved_view",
    "start_demo",
    "stop_batch",
    "sweep",
    "workers",
    "workflow",
    "workflows",
    "workflows_csv",
    "workflows_jsonl",
]
