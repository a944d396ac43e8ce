"""What went wrong, in a sentence that says what to do."""


class NoPostgres(Exception):
    """The embedded database cannot be had. The message is meant for the person at the terminal."""
