"""Settings from the environment."""

import pytest

from workflows import conf


@pytest.fixture(autouse=True)
def read_anew():
    conf.settings.cache_clear()
    yield
    conf.settings.cache_clear()


@pytest.mark.parametrize(("text", "seconds"), [("0.5", 0.5), ("20", 20.0)])
def test_durations_may_be_fractions_whatever_their_default_looks_like(monkeypatch, text, seconds):
    """Faults, driven from outside: seconds; fractions allowed. 0.5 read as 0 would beat without a pause."""
    monkeypatch.setenv("REKINDLE_HEARTBEAT", text)

    assert conf.settings().heartbeat == seconds


def test_counts_are_whole_numbers(monkeypatch):
    monkeypatch.setenv("REKINDLE_MAX_RECOVERY_ATTEMPTS", "5")

    assert conf.settings().max_recovery_attempts == 5
