"""What the kind of a target says about its figures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.diagnosis.targets import RULES, of_targets
from iobench.targets import KINDS
from iobench.trial import Trial, TrialSpec
from tests.iobench.summary.made import loops, result


def probed(target: str = "here", cache: str = "direct", rate: float = 500.0) -> Trial:
    """A read of the disk probe."""
    params = {"target": target, "operation": "read", "pattern": "sequential", "cache": cache}
    return Trial(TrialSpec("disk", params).id, "disk", params, 0, "done", {"mb_per_s": rate})


def codes(target: dict[str, Any], *trials: Trial) -> list[str]:
    """Findings of a run on a target of that description."""
    made = result(list(trials or (probed(),)), repeats=6)
    described = {"targets": {"here": target, "data": target}}
    return [finding.code for finding in of_targets(replace(made, environment=described))]


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ({"kind": "nvme"}, []),
        ({"kind": "virtio"}, []),
        ({"kind": "unknown"}, []),
        ({"kind": "holographic"}, []),
        ({"file_system": "tmpfs"}, []),
        ({"kind": "tmpfs"}, ["target-in-memory"]),
        ({"kind": "ram-disk"}, ["target-in-memory"]),
        ({"kind": "overlay"}, ["target-in-layers"]),
        ({"kind": "sata", "device": {"rotational": True}}, ["target-rotates"]),
        ({"kind": "sata", "device": {"rotational": False}}, []),
        ({"kind": "ebs"}, ["target-over-network"]),
        ({"kind": "lustre", "read_ahead_kb": 128}, ["target-over-network"]),
        ({"kind": "efs", "read_ahead_kb": 15000}, ["target-over-network"]),
        ({"kind": "nfs", "read_ahead_kb": 128}, ["target-over-network", "nfs-reads-little-ahead"]),
        ({"kind": "mountpoint-s3"}, ["target-of-objects"]),
    ],
)
def test_what_is_said_of_a_kind(target: dict[str, Any], said: list[str]) -> None:
    """Nothing of what is not known, nor of an older version's result."""
    assert codes(target) == said


def test_only_targets_with_figures_are_spoken_of() -> None:
    """A training loop has read the data's disk, not that of a probe that was skipped."""
    tmpfs = {"kind": "tmpfs"}
    assert codes(tmpfs, replace(probed(), status="skipped")) == []
    (found,) = of_targets(
        replace(
            result(loops([4.0], [5.0], [6.0]), repeats=6),
            environment={"targets": {"here": tmpfs, "data": tmpfs}},
        )
    )
    assert found.evidence.startswith("data (tmpfs: memory): ")


@pytest.mark.parametrize(
    ("name", "given", "label"),
    [
        ("shards@disk", ["shards"], "shards"),
        ("photos@disk", ["source"], "source"),
        ("shards-16MB@disk", ["shards", "source"], "data"),
        ("files@disk", ["source"], "data"),
        ("shards@disk", ["source"], "data"),
        ("shards@s3", ["shards"], None),
    ],
)
def test_what_is_given_lies_where_it_is(name: str, given: list[str], label: str | None) -> None:
    """Of an older version's result all of it is the data's folder."""
    trial = Trial("loader/x/0", "loader", {"loader": "raw", "data": name}, 0, "done")
    described = {"targets": {key: {"kind": "ebs"} for key in ("data", *given)}}
    found = of_targets(replace(result([trial], repeats=6), environment=described))
    named = [finding.evidence.partition(" (")[0] for finding in found]
    assert named == ([label] if label else [])


def test_alike_targets_are_one_finding() -> None:
    """With all their names."""
    made = result([probed("a"), probed("b")], repeats=6)
    described = {"targets": {"a": {"kind": "ebs"}, "b": {"kind": "nfs"}}}
    (found,) = of_targets(replace(made, environment=described))
    assert found.evidence.startswith("a (Amazon EBS), b (NFS): ")


@given(st.sampled_from(sorted(KINDS)))
def test_no_kind_has_two_of_one_code(kind: str) -> None:
    """Each says one thing once."""
    found = codes({"kind": kind, "read_ahead_kb": 1})
    assert len(found) == len(set(found)) <= 2


def test_the_docs_have_every_code() -> None:
    """A reader of a report looks there."""
    text = (Path(__file__).parents[3] / "docs" / "targets.md").read_text()
    codes = {rule.code for rule in RULES}
    assert {code for code in codes if f"| `{code}` |" not in text} == set()
