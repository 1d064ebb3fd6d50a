"""Where the limits of a control group stand."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from iobench.control_groups import folders

ROOT = Path("/cg")


def test_version_2_has_one_tree() -> None:
    """From our group up to the top, which a container may see as its own."""
    found = list(folders("memory", ROOT, "0::/a/b\n"))
    assert found == [(ROOT / "a/b", 2), (ROOT / "a", 2), (ROOT, 2)]
    assert list(folders("cpu", ROOT, "0::/\n")) == [(ROOT, 2)]


def test_version_1_has_a_tree_a_controller() -> None:
    """Others of its line are of the same group; other lines are not ours."""
    text = "12:cpu,cpuacct:/jobs\n4:memory:/m\n0::/\n"
    assert list(folders("cpu", ROOT, text)) == [
        (ROOT / "cpu/jobs", 1),
        (ROOT / "cpu", 1),
        (ROOT, 2),
    ]
    assert [path for path, version in folders("memory", ROOT, text) if version == 1] == [
        ROOT / "memory/m",
        ROOT / "memory",
    ]


@given(st.text(max_size=60))
def test_no_text_breaks_it(text: str) -> None:
    """It ends at the top, whatever stands there."""
    assert all(path.is_relative_to(ROOT) for path, _ in folders("cpu", ROOT, text))
