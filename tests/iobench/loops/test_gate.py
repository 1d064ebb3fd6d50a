"""A gate for processes of one trial."""

from __future__ import annotations

import threading

from iobench.loops.gate import gate, wait_at


def test_nobody_passes_before_the_last_has_come() -> None:
    """Whoever it is."""
    passed: list[int] = []
    with gate() as descriptors:

        def goes(rank: int) -> None:
            wait_at(descriptors, rank, 4)
            passed.append(rank)

        threads = [threading.Thread(target=goes, args=(rank,), daemon=True) for rank in (0, 2, 3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(0.05)
        assert passed == []
        goes(1)
        for thread in threads:
            thread.join(60)
    assert sorted(passed) == [0, 1, 2, 3]


def test_one_alone_waits_for_nobody() -> None:
    """A job of one process."""
    with gate() as descriptors:
        wait_at(descriptors, 0, 1)
