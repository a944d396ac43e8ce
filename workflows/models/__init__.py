"""The records of the engine. Promises are kept by Postgres: constraints, one trigger, one function."""

from .event import Event
from .policy import Policy
from .signal import Signal
from .step import Step
from .worker import Worker
from .workflow import PauseReason, Priority, Status, Workflow

__all__ = ["Event", "PauseReason", "Policy", "Priority", "Signal", "Status", "Step", "Worker", "Workflow"]
