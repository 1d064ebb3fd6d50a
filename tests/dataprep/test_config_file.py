"""A YAML file and dotted overrides, before any key of it is known."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.config_file import read_yaml, set_dotted
from dataprep.errors import ConfigError
from tests.permissions import reachable_folder, unprivileged
from tests.strategies import json_values

keys = st.text("abc", min_size=1, max_size=2)
nested = st.dictionaries(keys, st.recursive(st.integers(), lambda x: st.dictionaries(keys, x)))
dotted = st.lists(keys, min_size=1, max_size=4).map(".".join)


def at(values: Any, path: str) -> Any:
    """What stands at ``a.b.c``."""
    for key in path.split("."):
        values = values[key]
    return values


class TestReadYaml:
    def test_a_mapping(self, tmp_path: Path) -> None:
        """As YAML reads it."""
        path = tmp_path / "c.yaml"
        path.write_text("a: {b: [1, two]}\nc: é\n", "utf-8")
        assert read_yaml(path) == {"a": {"b": [1, "two"]}, "c": "é"}

    @pytest.mark.parametrize("content", ["", "\n", "# nothing\n", "null", "---\n"])
    def test_nothing_is_an_empty_mapping(self, tmp_path: Path, content: str) -> None:
        """A file without content asks for nothing."""
        path = tmp_path / "c.yaml"
        path.write_text(content)
        assert read_yaml(path) == {}

    @pytest.mark.parametrize(
        ("content", "said"),
        [
            (b"- 1\n- 2\n", "a mapping of keys to values"),
            (b"only words", "a mapping of keys to values"),
            (b"a: [1", "not valid YAML"),
            (b"a: b: c", "not valid YAML"),
            (b"\xff\xfe\xfd", "not valid YAML"),
            (b"a: 2024-13-01", "not valid YAML"),
            (b"a: !!python/object/apply:os.getcwd []", "not valid YAML"),
            (b"a: 1\n---\nb: 2\n", "not valid YAML"),
            (b"a: 1\nb: 2\na: 3\n", "not valid YAML: 'a' stands twice .*line 3"),
            (b"a: {b: 1, b: 1}\n", "'b' stands twice"),
        ],
    )
    def test_what_is_no_config(self, tmp_path: Path, content: bytes, said: str) -> None:
        """One line with the file's name and what is wrong; no object is ever built."""
        path = tmp_path / "c.yaml"
        path.write_bytes(content)
        with pytest.raises(ConfigError, match=said) as caught:
            read_yaml(path)
        assert str(path) in str(caught.value)
        assert "\n" not in str(caught.value)

    def test_keys_of_others_may_be_set_anew(self, tmp_path: Path) -> None:
        """What ``<<`` brings in is no second time."""
        path = tmp_path / "c.yaml"
        path.write_text("a: &a {x: 1, y: 2}\nb: &b {<<: *a, x: 3}\nc: {<<: *b, y: 4}\n")
        assert read_yaml(path)["c"] == {"x": 3, "y": 4}

    def test_no_file(self, tmp_path: Path) -> None:
        """Its name is shown, and a folder is no file."""
        with pytest.raises(ConfigError, match=r"no config file '.*missing\.yaml'"):
            read_yaml(tmp_path / "missing.yaml")
        with pytest.raises(ConfigError, match=r"is a folder, not a config file .*--source"):
            read_yaml(tmp_path)

    def test_a_file_that_may_not_be_read(self) -> None:
        """Is told from one that is not there."""
        with reachable_folder() as folder:
            path = folder / "c.yaml"
            path.write_text("a: 1")
            path.chmod(0)
            with unprivileged(), pytest.raises(ConfigError, match="Permission denied"):
                read_yaml(path)


class TestSetDotted:
    @given(nested, dotted, json_values)
    def test_the_value_stands_where_it_was_told(
        self, values: dict[str, Any], path: str, value: Any
    ) -> None:
        """Whatever stood on the way."""
        set_dotted(values, path, value)
        assert at(values, path) == value

    @given(nested, dotted, json_values)
    def test_nothing_else_changes(self, values: dict[str, Any], path: str, value: Any) -> None:
        """Keys beside the path keep their values."""
        before = copy.deepcopy(values)
        set_dotted(values, path, value)
        first = path.partition(".")[0]
        assert {k: v for k, v in values.items() if k != first} == {
            k: v for k, v in before.items() if k != first
        }

    @given(nested, dotted, json_values)
    def test_inner_mappings_are_not_shared(
        self, values: dict[str, Any], path: str, value: Any
    ) -> None:
        """Who holds an inner mapping sees no change of it."""
        held = {key: inner for key, inner in values.items() if isinstance(inner, dict)}
        before = copy.deepcopy(held)
        set_dotted(values, path, value)
        assert held == before

    def test_a_scalar_makes_way(self) -> None:
        """``a.b`` replaces a scalar ``a``; validation then tells whether that may be."""
        values: dict[str, Any] = {"a": 1, "c": 2}
        set_dotted(values, "a.b", 3)
        assert values == {"a": {"b": 3}, "c": 2}
