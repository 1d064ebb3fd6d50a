"""PURE. The training loops that the tables show, and those from which conclusions are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from iobench.analysis.evidence import Evidence
from iobench.analysis.loops import Loop, leading_loop, training_loops
from iobench.results.result import Result


@dataclass(frozen=True, slots=True)
class SelectedLoops:
    """The training loops of a run, with and without trials that are not evidence.

    Trials that are not evidence (``iobench.analysis.evidence``) are removed from a loop, if each of
    its inputs keeps a trial. Otherwise the loop keeps all its trials for the tables, but no
    conclusion is drawn from it.

    Attributes:
        of_all_trials: the loops with all completed trials.
        in_tables: the loops of the tables: without trials that are not evidence, where possible.
        reliable: the loops of the tables from which conclusions are drawn.
        leading: the loop of the tables that the verdict is about; None if there is none.
        doubt: the reason why no conclusion is drawn from ``leading``; empty if conclusions are
            drawn, or if the reason is unknown.
    """

    of_all_trials: Sequence[Loop]
    in_tables: Sequence[Loop]
    reliable: Sequence[Loop]
    leading: Loop | None
    doubt: str

    @property
    def is_leading_reliable(self) -> bool:
        """Whether conclusions may be drawn: from the leading loop, or from loaders without one."""
        return self.leading is None or self.leading in self.reliable


def select_loops(result: Result, evidence: Evidence, group: str | None) -> SelectedLoops:
    """Return the training loops of a run, with and without trials that are not evidence.

    Args:
        result: the run, with all trials.
        evidence: the trials of the run. Those that are not evidence are marked as skipped.
        group: the name of the loop that the verdict is about; None to let ``leading_loop`` choose.
    """
    of_all_trials = training_loops(result.trials, result.config)
    loops_of_evidence = training_loops(evidence.trials, result.config)
    of_evidence = {loop.group: loop for loop in loops_of_evidence}
    in_tables = []
    reliable_loops = []
    for loop in of_all_trials:
        loop_of_evidence = of_evidence.get(loop.group)
        if loop_of_evidence is not None and loop_of_evidence.inputs.keys() == loop.inputs.keys():
            in_tables.append(loop_of_evidence)
            reliable_loops.append(loop_of_evidence)
        else:
            in_tables.append(loop)
    leading = leading_loop([loop for loop in in_tables if group in (None, loop.group)])
    doubt = ""
    if leading is not None and leading not in reliable_loops:
        doubt = evidence.doubts.get(leading.group, "")
    return SelectedLoops(of_all_trials, in_tables, reliable_loops, leading, doubt)
