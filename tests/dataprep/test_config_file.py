"""YAML files, ``--set`` and dotted overrides, and schemas for editors, of any model."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

from dataprep.config_file import parse_settings, read_config, read_yaml, set_dotted
from dataprep.errors import ConfigError
from tests.permissions import reachable_folder, unprivileged
from tests.strategies import json_values

keys = st.text("abc", min_size=1, max_size=2)
nested = st.dictionaries(keys, st.recursive(st.integers(), lambda x: st.dictionaries(keys, x)))
dotted = st.lists(keys, min_size=1, max_size=4).map(".".join)


class Inner(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    size: int = 1


class Outer(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = "x"
    items: tuple[Inner, ...] = ()


def at(values: Any, path: str) -> Any:
    """What stands at ``a.b.c``."""
    for key in path.split("."):
        values = values[key]
    return values


class TestReadConfig:
    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ("items: [{size: 2}, {sise: 3}]", "unknown key items.1.sise: did you mean items.size?"),
            ("items: [{size: big}]", "items.0.size=big: give a whole number"),
            ("items: 3", "items=3: give a list"),
            ("name: [1]", "name: give text"),
            ("name: {a: 1}", "name: give text"),
            ("1: 2", "1=1: Keys should be strings"),
            ("a: 1\nb: 2", "unknown key a: known keys: name, items; unknown key b: "),
        ],
    )
    def test_every_problem_is_named(self, tmp_path: Path, content: str, message: str) -> None:
        """In one line after the file's name, with the place in a list."""
        path = tmp_path / "c.yaml"
        path.write_text(content)
        with pytest.raises(ConfigError) as caught:
            read_config(Outer, path, {})
        assert str(caught.value).startswith(f"{path}: {message}")

    def test_a_problem_of_an_option_has_its_name(self) -> None:
        """With the value that was given."""
        with pytest.raises(ConfigError, match=r"^--first big: give a whole number$"):
            read_config(Outer, None, {"items": [{}], "items.0.size": "big"}, FLAGS)

    def test_a_problem_of_the_file_has_its_key(self, tmp_path: Path) -> None:
        """Although there is an option for it."""
        path = tmp_path / "c.yaml"
        path.write_text("items: [{size: big}]")
        with pytest.raises(ConfigError, match=r"c\.yaml: items\.0\.size=big: give a whole number$"):
            read_config(Outer, path, {}, FLAGS)

    def test_long_values_are_cut(self) -> None:
        """A line stays readable."""
        with pytest.raises(ConfigError) as caught:
            read_config(Inner, None, {"size": "word " * 1000})
        assert len(str(caught.value)) < 100


FLAGS = {"items.0.size": "--first"}


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
            (b"a: 1\nb: 2\na: 3\n", "not valid YAML: key 'a' is repeated.*line 1"),
            (b"a: {b: 1, b: 1}\n", "key 'b' is repeated"),
            (b"a: " + b"[" * 100_000, "not valid YAML: .*recursion depth"),
            (b"? [a]\n: b\n", "not valid YAML"),
            (b"a: " + b"9" * 5000, "not valid YAML"),
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
        with pytest.raises(ConfigError, match=r"cannot read config file .*missing\.yaml: No such"):
            read_yaml(tmp_path / "missing.yaml")
        with pytest.raises(ConfigError, match=r"config file .*: Is a directory: .*--source"):
            read_yaml(tmp_path)

    def test_a_file_that_may_not_be_read(self) -> None:
        """Is told from one that is not there."""
        with reachable_folder() as folder:
            path = folder / "c.yaml"
            path.write_text("a: 1")
            path.chmod(0)
            with unprivileged(), pytest.raises(ConfigError, match="Permission denied"):
                read_yaml(path)


class TestSettings:
    def test_values_are_yaml(self) -> None:
        """Numbers, lists and mappings are what they look like; the first ``=`` divides."""
        pairs = ["a=1", "b.c=[x, 2]", "d=", "e=k=v", "f={g: true}", "a=2"]
        assert parse_settings(pairs) == {
            "a": 2,
            "b.c": ["x", 2],
            "d": None,
            "e": "k=v",
            "f": {"g": True},
        }

    @pytest.mark.parametrize("pair", ["", "a", "=1", "a: 1"])
    def test_other_texts_are_refused(self, pair: str) -> None:
        """The line says how a pair is written."""
        with pytest.raises(ConfigError, match="write KEY=VALUE"):
            parse_settings([pair])

    @pytest.mark.parametrize("value", ["[1", "{a: ", "'", "!!python/name:os.getcwd", "2024-13-01"])
    def test_broken_yaml_is_refused(self, value: str) -> None:
        """With the pair that holds it."""
        with pytest.raises(ConfigError, match=r"--set a=.*: not valid YAML"):
            parse_settings([f"a={value}"])


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

    def test_places_in_lists(self) -> None:
        """By number, without a change of the list that was there."""
        items = [{"x": 1}, {"x": 2}]
        values: dict[str, Any] = {"items": items}
        set_dotted(values, "items.1.x", 3)
        assert values == {"items": [{"x": 1}, {"x": 3}]}
        assert items[1] == {"x": 2}
        for path in ("items.2.x", "items.x", "items.-1"):
            with pytest.raises(ConfigError, match=f"{path}: the list has 2 entries"):
                set_dotted(values, path, 3)
