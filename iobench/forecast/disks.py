"""PURE. What trials of disks move, and how long they last."""

from __future__ import annotations

from iobench.forecast.bounds import Bounds, up_to
from iobench.forecast.facts import Facts
from iobench.forecast.loops import read_from
from iobench.forecast.predicted import Predicted
from iobench.probes.disk.offsets import sequential
from iobench.trial import Params

START_S = 0.5
LAYOUT_START_S = 1.0


def disk(params: Params, facts: Facts, timeout_s: float) -> Predicted:
    """Blocks of a test file.

    Cold and direct trials, and writes, touch no byte twice: never more than the whole blocks of
    the file. Warm ones read the file once beforehand, and then from memory.
    """
    block, processes = params["block_bytes"], params["parallelism"]
    most = sum(len(part) for part in sequential(params["file_bytes"], block, processes)) * block
    if params["pattern"] == "random":
        most = params["file_bytes"] // block * block
    each = Bounds(float(processes * block), float(most))
    read = params["operation"] == "read"
    warm = read and params["cache"] == "warm"
    return Predicted(
        seconds=Bounds(params["seconds"] if warm else 0.0, timeout_s),
        likely_s=params["seconds"] + START_S,
        disk_read=up_to(params["file_bytes"]) if warm else each if read else Bounds(),
        disk_written=Bounds() if read else each,
        assumed=(f"a disk trial takes {START_S:g} s beside the seconds that it measures",),
    )


def test_file(file_bytes: int, bytes_per_s: float) -> Predicted:
    """The file that is read, written once for a target."""
    size = float(file_bytes)
    return Predicted(
        seconds=Bounds(0.0, None),
        likely_s=size / bytes_per_s,
        disk_written=Bounds(0.0, size),
        assumed=(f"a disk writes {bytes_per_s / 1e6:g} MB/s",),
    )


def layout(params: Params, facts: Facts, timeout_s: float) -> Predicted:
    """The same images as shards, records or files: on a disk each at most once."""
    found = read_from(params["data"], facts, whole=params["access"] != "records")
    if not found.store:
        return Predicted(
            seconds=Bounds(params["seconds"] if params["cache"] == "warm" else 0.0, timeout_s),
            likely_s=params["seconds"] + LAYOUT_START_S,
            disk_read=up_to(found.bytes.high),
            unknown=found.unknown,
            assumed=(*found.assumed, _ASSUMED),
        )
    streams = params["parallelism"]
    return found.over(
        streams, params["seconds"], Bounds(params["seconds"], timeout_s), LAYOUT_START_S
    )


_ASSUMED = f"a layout trial takes {LAYOUT_START_S:g} s beside the seconds that it measures"
