"""PURE. A comparison in one sentence, and what its intervals rest on."""

from __future__ import annotations

from dataprep.counted import counted
from iobench.compare.comparison import Comparison

DRIFT = "The runs were not interleaved: drift between them is not excluded."


def sentence(found: Comparison) -> str:
    """The verdict, without a figure: what the environments differ in comes before those."""
    total = len(found.changes)
    worse, better = len(found.of("regression")), len(found.of("improvement"))
    unsure, same = len(found.of("underpowered")), len(found.of("no evidence"))
    size = percent(found.threshold)
    said = []
    if worse:
        said.append(f"Regression: {worse} of {counted(total, 'figure')} {_are(worse)} worse")
        said += [f"{better} better"] if better else []
    elif better:
        said.append(f"Improvement: {better} of {counted(total, 'figure')} {_are(better)} better")
        said.append("none is worse")
    elif same:
        said.append(f"No evidence of a change of {size} in {same} of {counted(total, 'figure')}")
    else:
        said.append(f"Underpowered: none of {counted(total, 'figure')} can be told from the base")
    if worse or better:
        said[-1] += f" by {size} or more"
        said += [f"{same} without evidence"] if same else []
    if unsure and unsure < total:
        said.append(f"{unsure} underpowered")
    if partly := len({each.name for each in found.apart if each.why != "device"}):
        said.append(f"{counted(partly, 'point')} not compared or not in full")
    unlike = ["of unlike machines"] if found.unlike else []
    return f"{', '.join([*said, *unlike])}."


def chance(found: Comparison) -> str:
    """How many intervals leave 1 out, and how many would by chance; empty where none can."""
    intervals = len(found.intervals)
    if not intervals:
        return ""
    leave = "leaves" if found.leaving == 1 else "leave"
    return (
        f"{found.leaving} of {counted(intervals, 'interval')} {leave} 1 out; had nothing changed, "
        f"about {found.by_chance:.1f} would by chance."
    )


def coverage(found: Comparison) -> str:
    """What the intervals cover, and how they were made."""
    covered = sorted({change.ratio.coverage for change in found.intervals})
    if not covered:
        return "No figure has the repeats that an interval of 95 % takes: 4 against 4."
    least, most = (f"{value * 100:.1f}" for value in (covered[0], covered[-1]))
    span = f"{least} %" if least == most else f"{least} to {most} %"
    return f"Ratios are new / base; their intervals (Mann-Whitney) cover {span}."


def percent(share: float) -> str:
    """``5 %``, ``2.5 %``."""
    return f"{share * 100:.3g} %"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"
