"""Wiring: settings, urls, wsgi, the embedded database (`postgres`), `up` and the demo. Not part of the wheel."""
