"""Files below a directory, as the local store lists them."""

from __future__ import annotations

import os
from contextlib import nullcontext
from typing import Any

import pytest

from dataprep.stores.local import LocalStore
from tests.dataprep.stores.listed import entries


class TestSymlinks:
    """What a listing makes of symbolic links."""

    def test_links_within_the_root_are_followed(self, store: LocalStore) -> None:
        """A link to a file or folder within the root lists as what it points to."""
        store.put("real/a", b"data")
        (store.root / "folder").symlink_to("real")
        (store.root / "file").symlink_to(store.root / "real" / "a")
        assert entries(store) == {"file": None, "folder/a": None, "real/a": None}
        assert {info.bytes for info in store.list()} == {4}
        assert store.get("folder/a") == store.get("file") == b"data"

    def test_links_out_of_the_root_are_not_followed(self, store: LocalStore) -> None:
        """A link that leaves the root is listed once, as a problem, with nothing behind it."""
        outside = store.root.parent / "store-outside"
        outside.mkdir()
        (outside / "secret").write_bytes(b"secret")
        (store.root / "folder").symlink_to(outside)
        (store.root / "file").symlink_to("../store-outside/secret")
        (store.root / "parent").symlink_to("..")
        problem = "symlink that leaves the source"
        assert entries(store) == {"folder": problem, "file": problem, "parent": problem}
        assert list(store.list("folder/")) == []

    def test_links_to_links_are_judged_by_their_end(self, store: LocalStore) -> None:
        """A link within the root to a link out of it leaves the root."""
        (store.root / "first").symlink_to("second")
        (store.root / "second").symlink_to("/")
        assert set(entries(store).values()) == {"symlink that leaves the source"}

    def test_broken_links_are_problems(self, store: LocalStore) -> None:
        """A link to nothing within the root is listed as broken."""
        (store.root / "broken").symlink_to("missing")
        assert entries(store) == {"broken": "broken symlink"}

    def test_a_link_to_itself_is_a_problem(self, store: LocalStore) -> None:
        """A link to itself, and two to each other, are listed as problems and end."""
        (store.root / "self").symlink_to("self")
        (store.root / "one").symlink_to("two")
        (store.root / "two").symlink_to("one")
        found = entries(store)
        assert set(found) == {"self", "one", "two"}
        assert all(found.values())

    def test_links_to_a_folder_above_are_problems(self, store: LocalStore) -> None:
        """A link to its own folder or to one above is listed once and not entered."""
        store.put("a/b/file", b"data")
        for name, target in {"here": ".", "up": "..", "top": str(store.root)}.items():
            (store.root / "a" / "b" / name).symlink_to(target)
        circle = "symlink to a folder that contains it"
        assert entries(store) == {
            "a/b/file": None,
            "a/b/here": circle,
            "a/b/up": circle,
            "a/b/top": circle,
        }

    def test_a_circle_of_two_links_ends(self, store: LocalStore) -> None:
        """Two folders that link to each other are each entered once through the other."""
        store.put("a/one", b"1")
        store.put("b/two", b"2")
        (store.root / "a" / "to-b").symlink_to("../b")
        (store.root / "b" / "to-a").symlink_to("../a")
        circle = "symlink to a folder that contains it"
        assert entries(store) == {
            "a/one": None,
            "a/to-b/two": None,
            "a/to-b/to-a": circle,
            "b/two": None,
            "b/to-a/one": None,
            "b/to-a/to-b": circle,
        }

    def test_a_circle_through_a_folder_within_the_target_ends(self, store: LocalStore) -> None:
        """A link into a folder that links back above that folder repeats nothing."""
        store.put("b/c/file", b"data")
        store.put("b/d", b"data")
        (store.root / "a").symlink_to("b/c")
        (store.root / "b" / "c" / "back").symlink_to("..")
        circle = "symlink to a folder that contains it"
        assert entries(store) == {
            "a/back": circle,
            "a/file": None,
            "b/c/back": circle,
            "b/c/file": None,
            "b/d": None,
        }

    @pytest.mark.parametrize("prefix", ["a/", "a/b/", "a/b/t", "a/b/top/", "a/b/top/a"])
    def test_a_prefix_lists_what_the_whole_listing_has(
        self, store: LocalStore, prefix: str
    ) -> None:
        """Listing below a prefix gives the entries of the whole listing that begin with it."""
        store.put("a/b/file", b"data")
        (store.root / "a" / "b" / "top").symlink_to(store.root)
        whole = [info for info in store.list() if info.key.startswith(prefix)]
        assert list(store.list(prefix)) == whole

    def test_a_root_that_is_a_link_is_its_target(self, store: LocalStore) -> None:
        """A root given by a symbolic link lists what lies behind it."""
        store.put("a/key", b"data")
        link = store.root.parent / "link"
        link.symlink_to(store.root)
        (store.root / "a" / "again").symlink_to("key")
        assert entries(LocalStore(str(link))) == {"a/key": None, "a/again": None}


def test_empty_folders_hold_nothing(store: LocalStore) -> None:
    """Folders without files are not listed."""
    (store.root / "empty" / "inner").mkdir(parents=True)
    assert entries(store) == {}


def test_files_that_vanish_while_listing_are_left_out(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file deleted after its folder was read does not end the listing."""
    for name in ("a", "b", "c"):
        store.put(name, b"x")
    real = os.scandir

    def scanned(folder: str) -> Any:
        with real(folder) as entries:
            found = list(entries)
        (store.root / "b").unlink(missing_ok=True)
        return nullcontext(found)

    monkeypatch.setattr(os, "scandir", scanned)
    assert [info.key for info in store.list()] == ["a", "c"]


def test_listing_is_in_the_order_of_bytes(store: LocalStore) -> None:
    """Within a folder names come in the order of their bytes, not of the locale."""
    names = ["B", "a", "\udcff", "ü", "Z"]
    for name in names:
        store.put(name, b"x")
    assert [info.key for info in store.list()] == sorted(names, key=os.fsencode)
