"""Tests of dataprep.requests."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.requests import PutRule, Requests, listing, of_output, of_source

RULE = PutRule(multipart_from_bytes=256, part_bytes=64)


@pytest.mark.parametrize(
    ("keys", "lists"), [(0, 1), (1, 1), (1000, 1), (1001, 2), (1_281_167, 1282)]
)
def test_a_listing_is_a_request_for_each_thousand_keys(keys: int, lists: int) -> None:
    """Even an empty place is asked once."""
    assert listing(keys) == Requests(lists=lists)


@pytest.mark.parametrize(
    ("size", "puts"), [(0, 1), (255, 1), (256, 4 + 2), (257, 5 + 2), (640, 10 + 2)]
)
def test_large_objects_go_in_parts(size: int, puts: int) -> None:
    """From the threshold on each part is a request, and beginning and completing are two."""
    assert RULE.stored(size) == Requests(puts=puts, gets=1)


def test_what_no_etag_confirms_is_read_back() -> None:
    """With KMS each stored object costs one GET more than the HEAD."""
    assert PutRule(256, 64, reads_back=True).stored() == Requests(puts=1, gets=2)


def test_a_source_is_read_once_an_image() -> None:
    """Archives need no listing, loose objects one in pages."""
    assert of_source(2_500, 2_400, listed=True) == Requests(gets=2_400, lists=3)
    assert of_source(2_500, 2_400, listed=False) == Requests(gets=2_400)


@given(st.integers(1, 5_000), st.integers(2, 8))
def test_a_shard_more_costs_its_objects_and_its_receipt_read(shards: int, objects: int) -> None:
    """Beside pages of listings every shard costs the same: the lock and the receipt are read."""
    one, more = (of_output([n], objects, 0, RULE) for n in (shards, shards + 1))
    assert more.puts - one.puts == objects
    assert more.gets - one.gets == objects + 2
    assert more.lists == one.lists
