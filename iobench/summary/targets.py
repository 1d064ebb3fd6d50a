"""PURE. What the kind of a target says about the figures that were measured on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from iobench.result import Finding, Result
from iobench.targets.kinds import KINDS, kind_name, reach

_NFS = {"nfs", "efs", "fsx-nfs"}
_SHORT_READ_AHEAD_KB = 128
Target = Mapping[str, Any]


class _Rule(NamedTuple):
    """Which targets it is about, and what is said of them."""

    code: str
    severity: str
    applies: Callable[[Target], bool]
    evidence: str
    advice: str


def _is_in_memory(target: Target) -> bool:
    return reach(target["kind"]) == "memory"


def _is_layered(target: Target) -> bool:
    return reach(target["kind"]) == "layers"


def _is_remote(target: Target) -> bool:
    return reach(target["kind"]) == "network" and not _has_objects(target)


def _has_objects(target: Target) -> bool:
    return target["kind"] in KINDS and KINDS[target["kind"]].objects


def _rotates(target: Target) -> bool:
    device = target.get("device")
    return isinstance(device, Mapping) and device.get("rotational") is True


def _reads_little_ahead(target: Target) -> bool:
    ahead_kb = target.get("read_ahead_kb")
    return target["kind"] in _NFS and isinstance(ahead_kb, int) and ahead_kb <= _SHORT_READ_AHEAD_KB


# https://docs.aws.amazon.com/efs/latest/ug/performance-tips.html: read_ahead_kb.
_RULES = (
    _Rule(
        "target-in-memory",
        "warning",
        _is_in_memory,
        "no disk is behind it",
        "give a path on the disk that is meant: these are figures of memory",
    ),
    _Rule(
        "target-in-layers",
        "info",
        _is_layered,
        "its figures are those of the container's layers and of what lies below",
        "mount the disk that is meant into the container, and give a path on that mount",
    ),
    _Rule(
        "target-rotates",
        "info",
        _rotates,
        "a random read waits for the disk to turn",
        "read whole shards in order; small files and records by offset cost a seek each",
    ),
    _Rule(
        "target-over-network",
        "info",
        _is_remote,
        "its bytes come over a network, from a server that may cache them and has other users",
        "cold is cold on this machine alone; hold the figures against the limits of volume and "
        "machine, and measure again at another hour",
    ),
    _Rule(
        "target-of-objects",
        "info",
        _has_objects,
        "each file is an object, and to open one is a request",
        "read shards, not small files, and measure the store itself under object_store",
    ),
    _Rule(
        "nfs-reads-little-ahead",
        "info",
        _reads_little_ahead,
        "the kernel reads no more than 128 KiB ahead there",
        "for sequential reads raise read_ahead_kb of its bdi in sysfs; EFS's guide says 15000",
    ),
)


def of_targets(result: Result) -> Iterator[Finding]:
    """Findings about those targets that trials used, one for all that it applies to."""
    used = _used(result)
    for rule in _RULES:
        labels = [label for label, target in used.items() if rule.applies(target)]
        if labels:
            named = ", ".join(f"{label} ({kind_name(used[label]['kind'])})" for label in labels)
            yield Finding(rule.code, rule.severity, f"{named}: {rule.evidence}", rule.advice)


def _used(result: Result) -> dict[str, Target]:
    """Targets with a kind, by label, whose figures are in the result."""
    done = [trial for trial in result.trials if trial.status == "done"]
    labels = {str(trial.params["target"]) for trial in done if trial.kind == "disk"}
    described = result.environment.get("targets") or {}
    names = {str(trial.params.get("data", "")) for trial in done}
    labels |= {read_from(name, described) for name in names if name.endswith("@disk")}
    return {
        label: target
        for label, target in described.items()
        if label in labels and isinstance(target, Mapping) and isinstance(target.get("kind"), str)
    }


def read_from(name: str, described: Mapping[str, Any]) -> str:
    """The label of the target that holds data of a name: what is read as it was given lies where
    that is; the rest is made in the data's folder."""
    given = {"photos@disk": ("source",), "shards@disk": ("mount", "shards")}.get(name, ())
    return next((label for label in given if label in described), "data")
