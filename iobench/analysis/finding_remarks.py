"""PURE. The remarks beside findings, such as ``set repeats: 6``.

Change the wording of a remark here. It is stored as ``advice`` of the finding. The wording of
recommendations, which have a place in the list of changes and may have a gain, is in
``iobench.analysis.recommendations``.
"""

from __future__ import annotations

from collections.abc import Mapping

REMARKS: Mapping[str, str] = {
    # Findings about a loop.
    "input-bound": "add inputs: training.inputs: [synthetic, warm, cold]",
    "input-bound-ladder": (
        "add inputs: training.inputs: [synthetic, warm, cold], or run iobench ladder CONFIG"
    ),
    "late-first-batch": (
        "use shards, whose samples are listed in one manifest, and keep workers from epoch to "
        "epoch, so that they start only once"
    ),
    "store-throttles": "use fewer connections and larger requests",
    "step-outliers": "see the chart of steps; try training.prefetch: 4",
    "ranks-differ": "gradients were not exchanged",
    "uneven-ranks": (
        "look at the CPUs, disk and network of that rank; then try training.prefetch: 4"
    ),
    "processes-share": "plan hosts by the rate of all their processes together",
    # Findings about a watched loop.
    "waiting": (
        "DataLoader(num_workers=...); to find the part: dataprep init, then iobench run "
        "configs/bench/train-resnet50.yaml"
    ),
    "waiting-workers": (
        "use more workers: DataLoader(num_workers=..., prefetch_factor=...); if the loop does not "
        "get faster, storage is the limit"
    ),
    "waiting-others": (
        "stop the programs that run beside the training, then measure again; if the loop still "
        "waits, its workers wait for storage or are too few: DataLoader(num_workers=...)"
    ),
    "waiting-preparation": (
        "store smaller images: dataprep shard --size 256; or use a machine with more CPUs"
    ),
    "watched-late-first-batch": (
        "look for a download, a listing of many files, or workers that import large packages"
    ),
    "watched-epoch-starts": ("keep workers between epochs: DataLoader(persistent_workers=True)"),
    # Findings about the measurement.
    "few-repeats": "set repeats: {repeats}",
    "unfinished": "continue the run with iobench run --resume",
    "stood-still": "measure again into another folder",
    "store-on-this-machine": "measure the store that you train from",
    "cache-resident": "use a data set of at least 5 times the memory",
    "not-shown-cold": "read these figures as warm",
    "not-all-warm": "use fewer images, or more memory",
    "scattered": "repeat with nothing else running",
    "emulated": "measure the real loop before you buy",
    "instrumentation": "use larger batches",
    "sampling": "set sampling.per_s to a lower value",
    "no-evidence": "measure with more images or more steps, so that the rate is a steady state",
    "ceiling-not-measured": "set {keys}, or add loader raw over the same data",
    "beyond-limit": (
        "read more than the cache holds (file_bytes), or correct the limit under limits"
    ),
    # Findings about storage.
    "target-in-memory": "give a path on the disk that you mean to measure",
    "target-in-layers": "mount the disk that you mean to measure, and give a path on it",
    "target-over-network": ("read a cold figure as cold on this host; server cache unknown"),
    "target-rotates": "read whole shards in order: a seek takes longest",
    "nfs-reads-little-ahead": "raise read_ahead_kb of the mount's bdi in sysfs",
    # Findings about several hosts.
    "host-missing": "repair this host, then continue with --resume",
    "hosts-uneven": "compare the network and the machine of this host with those of the others",
    "hosts-apart": "raise the seconds or steps of each trial: sums over hosts are too high",
}
"""The remarks beside findings, by the code of the finding.

A key that is not a code is for a finding with different remarks in different cases, such as
``watched-…`` for watched loops.
"""


def remark_on(finding: str, **values: object) -> str:
    """Return the remark beside a finding, with ``values`` in its placeholders.

    Args:
        finding: a key of ``REMARKS``.
        values: the values of the placeholders, such as ``repeats=6``.
    """
    return REMARKS[finding].format(**values)
