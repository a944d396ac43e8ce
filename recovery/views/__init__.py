"""The operator's pages. A view asks for a permission, calls one query or one verb, and draws one partial.

door       who may come in, and what every answer carries
errors     when something is wrong
frame      what surrounds every page, as far as it lives
overview   how things are
workflows  the list, and the same as CSV
workflow   one of them
ask        the dialog before an act, and the act
name       all of one name
recovery   every rescue
workers    who works
kill       ends one of them, in the demo
audit      who did what
charts     figures, tables, CSV
health     for load balancers
"""

from .ask import ask
from .audit import audit, audit_csv
from .charts import chart
from .frame import rail
from .health import healthz
from .kill import kill
from .name import name
from .overview import overview
from .recovery import change_mode, change_rule, recovery, sweep
from .workers import workers
from .workflow import payload, workflow
from .workflows import workflows, workflows_csv

__all__ = [
    "ask",
    "audit",
    "audit_csv",
    "change_mode",
    "change_rule",
    "chart",
    "healthz",
    "kill",
    "name",
    "overview",
    "payload",
    "rail",
    "recovery",
    "sweep",
    "workers",
    "workflow",
    "workflows",
    "workflows_csv",
]
