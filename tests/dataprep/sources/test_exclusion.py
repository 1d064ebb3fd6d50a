"""Globs leave out files and folders of a source."""

from __future__ import annotations

import fnmatch
import shlex

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from dataprep.sources.exclusion import Exclusion, check_glob, exclude_option

characters = st.sampled_from("[]!-*?ab09+.&~|\\\n{}")


def matches(glob: str, path: str) -> bool:
    """Whether a glob leaves out a path."""
    return bool(Exclusion((glob,)).by_glob(path))


@given(
    glob=st.text(characters | st.just("^"), min_size=1),
    name=st.text(characters | st.just("^"), min_size=1),
)
@example(glob="[!-a]", name="-")
@example(glob="[!-a]", name="b")
@example(glob="[!-!]", name="a")
@example(glob="[!]]x", name="ax")
@example(glob="[]-a]", name="^")
def test_globs_match_names_as_in_the_standard_library(glob: str, name: str) -> None:
    """Stars, question marks and sets match the same names as those of ``fnmatch``."""
    assume("[^" not in glob)  # fnmatch knows only "[!" as a negation
    try:
        check_glob(glob)
    except ValueError:
        assume(False)
    assert matches(glob, name) == fnmatch.fnmatchcase(name, glob)


@pytest.mark.parametrize("glob", ["a[+-9]b", "a[!x]b", "a[^x]b", "a?b", "a*b", "a[!!-.]b"])
def test_no_set_or_wildcard_matches_a_slash(glob: str) -> None:
    """A glob without a slash matches one name, never parts of two names."""
    assert not matches(glob, "a/b")
    assert matches(glob, "a1b")


def test_a_caret_negates_a_set() -> None:
    """A set that begins with a caret matches all other characters."""
    assert matches("[^a]", "b")
    assert not matches("[^a]", "a")
    assert matches("[a^]", "^")


@pytest.mark.parametrize("glob", ["[b-a]", "[!9-0]x"])
def test_a_reversed_range_is_refused(glob: str) -> None:
    """A range in the wrong order is an error."""
    with pytest.raises(ValueError, match="a range in brackets is in the wrong order"):
        check_glob(glob)


names = st.text(st.sampled_from("ab[]!^-*?\\ '\n\udce9"), min_size=1, max_size=6)
paths = st.lists(names, min_size=1, max_size=3).map("/".join)


@given(path=paths, other=paths)
@example(path="a[1].tar", other="a1.tar")
@example(path="a*?.tar", other="ab.tar")
def test_an_advised_option_leaves_out_exactly_one_path(path: str, other: str) -> None:
    """The option that a message advises matches the path, whatever characters it has."""
    option, glob = shlex.split(exclude_option(path))
    assert option == "--exclude"
    assert matches(glob, path)
    # A path with a slash begins at the source. A name alone is left out at any depth.
    is_below = f"{other}/".startswith(f"{path}/") if "/" in path else path in other.split("/")
    assert matches(glob, other) == is_below
