"""How quantities are said on pages. times.js says them the same way."""


def duration(seconds: float) -> str:
    """Compact: 12 ms, 0.4 s, 48 s, 12 min, 3 h 5 min, 2 d 4 h."""
    seconds = max(seconds, 0)
    if 0 < seconds < 0.095:
        return f"{max(1, round(seconds * 1000))} ms"
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = int(seconds // 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if hours else f"{days} d"


def distance(seconds: float) -> str:
    """How far away a moment is: just now, 48 s ago, in 12 min. One unit is enough."""
    away = abs(seconds)
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min"), (1, "s")):
        if away >= size:
            text = f"{int(away // size)} {unit}"
            return f"in {text}" if seconds > 0 else f"{text} ago"
    return "now"


def percent(share: float | None) -> str:
    """99.7 %. Only what is whole is called 100 %."""
    if share is None:
        return ""
    text = f"{share * 100:.1f}".removesuffix(".0")
    return f"{'99.9' if text == '100' and share < 1 else text} %"
