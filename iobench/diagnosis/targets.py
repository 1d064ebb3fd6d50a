"""PURE. What the kind of a target says about the figures that were measured on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from iobench.data.given import read_from
from iobench.diagnosis.rule import Rule, Severity
from iobench.diagnosis.sources import EFS_GUIDE, OURS
from iobench.result import Finding, Result
from iobench.targets.kinds import KINDS, kind_name, reach

_NFS = {"nfs", "efs", "fsx-nfs"}
_SHORT_READ_AHEAD_KB = 128
Target = Mapping[str, Any]


class _About(NamedTuple):
    """A rule, which targets it is about, and what is said of them."""

    rule: Rule
    applies: Callable[[Target], bool]
    evidence: str


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


_SEEN = "environment.targets: what the mount table and sysfs say of each target"


def _of_kind(
    code: str, title: str, severity: Severity, fires: str, advice: str, source: str = OURS
) -> Rule:
    return Rule(code, title, "measurement", severity, fires, _SEEN, advice, source)


_ABOUT = (
    _About(
        _of_kind(
            "target-in-memory",
            "A target is memory, no disk",
            "warning",
            "a target is tmpfs or a RAM disk",
            "give a path on the disk that is meant: these are figures of memory",
        ),
        _is_in_memory,
        "no disk is behind it",
    ),
    _About(
        _of_kind(
            "target-in-layers",
            "A target is a container's layers",
            "info",
            "a target is overlay or of its kind",
            "mount the disk that is meant into the container, and give a path on that mount",
        ),
        _is_layered,
        "its figures are those of the container's layers and of what lies below",
    ),
    _About(
        _of_kind(
            "target-rotates",
            "A target rotates",
            "info",
            "a SATA, SAS or USB drive of which the kernel says that it rotates",
            "read whole shards in order; small files and records by offset cost a seek each",
        ),
        _rotates,
        "a random read waits for the disk to turn",
    ),
    _About(
        _of_kind(
            "target-over-network",
            "A target lies behind a network",
            "info",
            "a target is EBS, NFS, Lustre or another whose bytes come over a network",
            "cold is cold on this machine alone; hold the figures against the limits of volume and "
            "machine, and measure again at another hour",
        ),
        _is_remote,
        "its bytes come over a network, from a server that may cache them and has other users",
    ),
    _About(
        _of_kind(
            "target-of-objects",
            "A target's files are objects",
            "info",
            "a target is FUSE over an object store",
            "read shards, not small files, and measure the store itself under object_store",
        ),
        _has_objects,
        "each file is an object, and to open one is a request",
    ),
    _About(
        _of_kind(
            "nfs-reads-little-ahead",
            "NFS reads little ahead",
            "info",
            f"NFS whose read_ahead_kb is {_SHORT_READ_AHEAD_KB} or less",
            "for sequential reads raise read_ahead_kb of its bdi in sysfs; EFS's guide says 15000",
            EFS_GUIDE,
        ),
        _reads_little_ahead,
        "the kernel reads no more than 128 KiB ahead there",
    ),
)
RULES = tuple(about.rule for about in _ABOUT)


def of_targets(result: Result) -> Iterator[Finding]:
    """Findings about those targets that trials used, one for all that it applies to."""
    used = _used(result)
    for about in _ABOUT:
        labels = [label for label, target in used.items() if about.applies(target)]
        if labels:
            named = ", ".join(f"{label} ({kind_name(used[label]['kind'])})" for label in labels)
            yield about.rule.found(f"{named}: {about.evidence}")


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
