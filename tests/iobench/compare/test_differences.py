"""Which differences are the machine's, and which are what one wants to measure."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.compare.differences import config, environment
from tests.iobench.compare.saved_runs import MACHINE

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda below: (
        st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=6), below, max_size=3)
    ),
    max_leaves=8,
)
mappings = st.dictionaries(st.text(max_size=6), JSON, max_size=4)


def changed(**parts: Any) -> Mapping[str, Any]:
    """The machine with other parts; ``None`` takes one away."""
    made = {**deepcopy(dict(MACHINE)), **parts}
    return {key: value for key, value in made.items() if value is not None}


@pytest.mark.parametrize(
    ("parts", "path", "sort"),
    [
        ({"processor": "Intel"}, "processor", "machine"),
        ({"processors": 8}, "processors", "machine"),
        ({"memory_bytes": 64 * 2**30}, "memory_bytes", "machine"),
        ({"gpus": []}, "gpus.count", "machine"),
        ({"something_new": 1}, "something_new", "untold"),
        ({"processor": None}, "processor", "untold"),
        ({"kernel": "Linux 6.9.0"}, "kernel", "software"),
        ({"python": "3.12.1"}, "python", "software"),
        ({"libraries": {"numpy": "2.4.1", "torch": "2.14.0"}}, "libraries.torch", "software"),
        ({"libraries": {"numpy": "2.4.1"}}, "libraries.torch", "software"),
    ],
)
def test_each_part_has_its_sort(parts: dict[str, Any], path: str, sort: str) -> None:
    """The machine makes runs unlike, software is what one compares, the rest is told."""
    found = {each.path: each.sort for each in environment(MACHINE, changed(**parts))}
    assert found[path] == sort


@pytest.mark.parametrize(
    ("key", "base", "new", "sorts"),
    [
        ("governor", "powersave", "performance", ["software"]),
        ("transparent_huge_pages", "never", "always", ["software"]),
        ("processor_quota", 2.0, 4.0, ["machine"]),
        ("machine", {"instance_type": "a"}, {"instance_type": "b"}, ["machine"]),
        ("machine", {"container": "Docker"}, {"container": ""}, ["software"]),
        ("disks", [{"kind": "nvme"}], [], []),
        ("gpus", [{"pcie.link.gen.current": "1"}], [{"pcie.link.gen.current": "4"}], []),
        ("gpus", [{"power.limit": "300 W"}], [{"power.limit": "350 W"}], ["software"]),
        ("gpus", [{"name": "A"}], [{"name": "A"}, {"name": "A"}], ["machine", "untold"]),
        ("stores", {"s3": {"kind": "a", "why": "x"}}, {"s3": {"kind": "b"}}, ["machine"]),
    ],
)
def test_what_newer_runs_tell_has_its_sort_too(
    key: str, base: object, new: object, sorts: list[str]
) -> None:
    """Settings are software, what passes is nothing, limits and clouds are the machine."""
    assert [each.sort for each in environment({key: base}, {key: new})] == sorts


def target(**parts: Any) -> dict[str, Any]:
    """The targets of a machine with a disk that differs."""
    return {"targets": {"nvme": {**MACHINE["targets"]["nvme"], **parts}}}


@pytest.mark.parametrize(
    ("parts", "sorts"),
    [
        ({"file_system": "tmpfs"}, ["machine"]),
        ({"total_bytes": 128 * 10**9}, ["machine"]),
        ({"mount_options": "rw,noatime"}, ["software"]),
        ({"free_bytes": 1}, []),
        ({"device": {"model": "NVMe"}}, ["untold"]),
        ({"kind": "nvme", "why": "it is", "name": "NVMe"}, ["untold"]),
    ],
)
def test_targets_are_the_machine_but_for_their_options(
    parts: dict[str, Any], sorts: list[str]
) -> None:
    """Room on a disk is another every day."""
    found = environment(MACHINE, changed(**target(**parts)))
    assert [each.sort for each in found] == sorts


def test_a_target_that_one_run_has_is_a_matter_of_what_was_asked() -> None:
    """Its points are in one run only anyhow."""
    both = {"targets": {**MACHINE["targets"], "tmp": {"file_system": "tmpfs"}}}
    (found,) = environment(MACHINE, changed(**both))
    assert (found.path, found.sort, found.base) == ("targets.tmp.file_system", "config", "")


def test_a_driver_is_software() -> None:
    """Of the same GPU."""
    newer = [{**MACHINE["gpus"][0], "driver_version": "580.1"}]
    (found,) = environment(MACHINE, changed(gpus=newer))
    assert (found.sort, str(found)) == ("software", "gpus.0.driver_version: 570.86 -> 580.1")


def test_memory_that_the_kernel_keeps_is_no_difference() -> None:
    """Within 2 %."""
    assert environment(MACHINE, changed(memory_bytes=127 * 2**30)) == ()
    assert environment(MACHINE, changed(memory_bytes=120 * 2**30)) != ()


def test_the_machine_comes_first() -> None:
    """What decides whether runs can be compared."""
    found = environment(MACHINE, changed(processors=2, kernel="x", iobench="9"))
    assert [each.sort for each in found] == ["machine", "software", "software"]


def test_configs_differ_key_by_key() -> None:
    """But for the run's name; what is not there is nothing."""
    base = {"name": "a", "repeats": 6, "loaders": [{"loader": ["raw"], "workers": [1, 2]}]}
    new = {"name": "b", "repeats": 9, "loaders": [{"loader": ["raw"], "workers": [4]}], "x": "\n"}
    assert [str(each) for each in config(base, new)] == [
        "repeats: 6 -> 9",
        "loaders.0.workers: [1, 2] -> [4]",
        r"x: none -> \x0a",
    ]


@given(mappings)
def test_nothing_differs_from_itself(value: dict[str, Any]) -> None:
    """Whatever a file holds."""
    assert environment(value, value) == ()
    assert config(value, deepcopy(value)) == ()


@given(mappings, mappings)
def test_differences_turn_round(base: dict[str, Any], new: dict[str, Any]) -> None:
    """The same paths and sorts, sides swapped; on one line each."""
    there = {(each.path, each.base, each.new, each.sort) for each in environment(base, new)}
    back = {(each.path, each.new, each.base, each.sort) for each in environment(new, base)}
    assert there == back
    assert all("\n" not in str(each) for each in environment(base, new))
