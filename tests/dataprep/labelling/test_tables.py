"""Tests of dataprep.labelling.tables."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.errors import ConfigError
from dataprep.labelling.tables import HEADS, once, pairs

TENCH = ("n01440764", "tench, Tinca tinca")
SHAPES = {
    "LOC_synset_mapping.txt": "n01440764 tench, Tinca tinca\nn01443537 goldfish\n",
    "imagenet_metadata.txt": "n01440764\ttench, Tinca tinca\nn01443537\tgoldfish\n",
    "csv": 'n01440764,"tench, Tinca tinca"\nn01443537,goldfish\n',
    "csv with a header": 'synset,text\nn01440764,"tench, Tinca tinca"\nn01443537,goldfish\n',
    "keras": '{"1": ["n01443537", "goldfish"], "0": ["n01440764", "tench, Tinca tinca"]}',
    "json": '{"n01440764": "tench, Tinca tinca", "n01443537": "goldfish"}',
    "byte order mark": "\ufeffn01440764\ttench, Tinca tinca\r\n\r\n# words\nn01443537\tgoldfish",
}


@pytest.mark.parametrize("text", SHAPES.values(), ids=SHAPES.keys())
def test_shapes(text: str) -> None:
    """Class and text come from every customary file, in its order."""
    found = pairs(text.encode(), "file")
    assert [(key, value) for _, key, value in found] == [TENCH, ("n01443537", "goldfish")]


def test_one_column() -> None:
    """A list of classes has no second column; JSON lists are the same."""
    for text in ("ant\nbee bumble\n", '["ant", "bee bumble"]'):
        found = pairs(text.encode(), "file")
        assert [(key, value) for _, key, value in found] == [("ant", None), ("bee bumble", None)]


def found_in(text: str) -> list[tuple[str, str | None]]:
    """Both columns of each row."""
    return [(key, value) for _, key, value in pairs(text.encode(), "file")]


@given(first=st.sampled_from(sorted(HEADS)), second=st.sampled_from(sorted(HEADS)))
def test_a_header_has_a_known_word_in_both_columns(first: str, second: str) -> None:
    """It is left out; where one of the two is no such word it is a row as any other."""
    assert found_in(f"{first.upper()},{second.title()}\ncat,Cat\n") == [("cat", "Cat")]
    for cells in ((f"x{first}", second), (first, f"x{second}"), (first, "")):
        assert found_in(",".join(cells) + "\ncat,Cat\n") == [cells, ("cat", "Cat")]


def test_a_header_of_one_column() -> None:
    """A few words only: others are likely classes."""
    assert found_in("Class\ncat\n") == [("cat", None)]
    assert found_in("image\ntext\n") == [("image", None), ("text", None)]


def test_comments_are_a_hash_and_a_space() -> None:
    """A name that begins with a hash is a name."""
    assert found_in("# old and new\n#\n#1.jpg,cat\n") == [("#1.jpg", "cat")]


def test_a_row_of_one_column_among_two() -> None:
    """What is read as two columns needs them; an empty second one is one."""
    assert once(pairs(b"a,\n", "file"), "file") == {"a": ""}
    with pytest.raises(ConfigError, match="file, line 2: 'b' stands alone, where two columns are"):
        once(pairs(b"a,\nb\n", "file"), "file")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"a,b\na,b,c\n", "file, line 2: 3 columns"),
        (b"a,b\n,c\n", "file, line 2: the first column is empty"),
        (b'a,b\n"a,c\n', "file, line 2: unexpected end of data"),
        (b"\xff\xff", "not text in UTF-8"),
        ("a,b\n".encode("utf-16"), "is in UTF-16: save it as UTF-8"),
        (b"{", "not JSON"),
        (b'{"0": ["a", "b", "c"]}', "expected a class and its text"),
        (b'{"x": ["a", "b"]}', "'x' is not the number of a class"),
        (b'{"a": {"b": 1}}', "expected a name"),
        (b"[[]]", "expected a name"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(data: bytes, message: str) -> None:
    """A file that cannot be read raises with its name and the line."""
    with pytest.raises(ConfigError, match=message):
        pairs(data, "file")


def test_a_key_that_is_there_twice() -> None:
    """The same twice is harmless, two values for one key are not."""
    assert once(pairs(b"a,b\na,b\n", "file"), "file") == {"a": "b"}
    with pytest.raises(ConfigError, match="file, line 2: 'a' is 'c' here and 'b' before"):
        once(pairs(b"a,b\na,c\n", "file"), "file")


almost_tables = st.from_regex(r'[\[{",:a0\]}\n\t ]*').map(str.encode)


@given(data=st.binary() | st.text().map(str.encode) | almost_tables)
def test_any_bytes(data: bytes) -> None:
    """Whatever a file holds, rows or a ConfigError come of it."""
    with contextlib.suppress(ConfigError):
        assert all(row.key for row in pairs(data, "file")) or data.lstrip()[:1] in b"[{"
