"""The life of one workflow as a drawing: a row per step and path, a bar per attempt. Pure; a template draws it.

spans     the diary read as attempts and waits: when each began and ended, under whom, and how
scale     time along the page, long waits folded
drawing   rows, bars, marks and ticks with their places
"""

from .drawing import MOST, Bar, Drawing, Mark, Row, draw
from .spans import History, Line, Span, read

__all__ = ["MOST", "Bar", "Drawing", "History", "Line", "Mark", "Row", "Span", "draw", "read"]
