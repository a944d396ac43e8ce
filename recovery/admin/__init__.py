"""The stock admin: `looking` shows what the engine and the watch write, `acting` does what operators may do to a
workflow, `tuning` changes policies and rules; `finding` is how they find rows. Every change is audited."""

from . import acting, looking, tuning

__all__ = ["acting", "looking", "tuning"]
