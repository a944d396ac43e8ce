"""What an act changed, as a row of the audit tells it."""

from recovery.differences import differences


def test_the_state_comes_first_and_what_few_look_for_last():
    before = {"fence": 2, "wake_at": None, "status": "failed", "basket": ""}
    after = {"fence": 3, "wake_at": "2026-11-18T16:55:36.404713+00:00", "status": "queued", "basket": ""}

    assert differences(before, after, whole=True) == [
        ("status", "failed", "queued"),
        ("wake at", "–", "2026-11-18 16:55:36 UTC"),
        ("fence", "2", "3"),
    ]


def test_text_that_only_holds_a_moment_stays_as_it_is():
    assert differences({}, {"note": "at 2026-11-18T16:55:36Z"}, whole=True)[0][2] == "at 2026-11-18T16:55:36Z"
