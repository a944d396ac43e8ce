import time

from workflows.ids import uuid7


def test_ids_made_one_after_the_other_sort_that_way():
    made = []
    for _ in range(1000):
        made.append(uuid7())
        end = time.time_ns() + 1000
        while time.time_ns() < end:
            pass

    assert made == sorted(made)
    assert {one.version for one in made} == {7}
    assert len({one.bytes[8:] for one in made}) == 1000  # what is not time is chance
