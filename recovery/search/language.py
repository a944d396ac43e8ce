"""The words of the search language, and what each means. Read by the parser, the suggestions and the help."""

LONGEST = 200  # characters of a search
MOST_TERMS = 20

KEYS = {
    "status": "one of pending, queued, running, paused, completed, failed, cancelled",
    "name": "a workflow's name, or its beginning with a star: name:order*",
    "key": "a key, whole",
    "id": "an id, or its beginning",
    "step": "the step at which it runs, waits, tries again or failed",
    "error": "the type of its error: error:TimeoutError",
    "worker": "who holds it: worker:host or worker:host:pid",
    "attempts": "recoveries in a row without progress: attempts:>1",
    "age": "time since it was asked for: age:>10m, age:<2h",
    "is": "one of orphan, late, uncertain, blocked, held, dead-letter (failed, and nobody has put it aside)",
    "basket": "where it waits for somebody",
    "version": "of its code, beside a name: name:order version:2",
}
INPUT = "input."  # begins the keys that name a field of the input
UNITS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
