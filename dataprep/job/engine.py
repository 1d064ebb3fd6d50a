"""Who does the work: what all engines have in common.

All take the same tasks and give the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from dataprep.in_hand import UNNOTED, InHand
from dataprep.worker import Progress, Report, ShardResult, ShardTask, make_shard

OnResult = Callable[[ShardResult], None]
"""Called in the driver for each finished shard; raising stops the job."""


def nothing() -> None:
    """Do nothing: for those who need not know when work begins."""


class Engine(Protocol):
    """Runs shard tasks."""

    def run(
        self,
        tasks: Sequence[Callable[[], ShardTask]],
        on_result: OnResult,
        on_ready: Callable[[], None] = nothing,
    ) -> None:
        """Run all tasks, each built when its turn comes; a bounded number is in flight.

        ``on_ready`` is called once, when there is somebody to do the work.
        """
        ...


def make_shard_or_take_back(
    task: ShardTask,
    report: Report,
    slots: Any,
    threads: int = 0,
    *,
    isolated: bool = False,
    in_hand: InHand = UNNOTED,
) -> ShardResult:
    """``make_shard``; if it fails, the progress it reported is taken back."""
    reported = Progress()

    def counted(progress: Progress) -> None:
        nonlocal reported
        report(progress)
        reported = reported + progress

    try:
        return make_shard(task, counted, slots, threads, isolated=isolated, in_hand=in_hand)
    except Exception:
        report(-reported)
        raise
