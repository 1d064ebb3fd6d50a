"""What may stand under ``object_store`` in a config."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from iobench.probes.object_store.settings import ObjectStoreSettings

pytestmark = pytest.mark.slow


def test_defaults_span_small_images_to_large_shards() -> None:
    """Sizes go from 5 kB to 128 MB and connections from one to many."""
    settings = ObjectStoreSettings()
    assert (min(settings.object_bytes), max(settings.object_bytes)) == (5_000, 128_000_000)
    assert min(settings.connections) == 1
    assert {"boto3", "obstore"} <= set(settings.clients)


def test_sizes_are_read_with_their_unit_and_one_needs_no_list() -> None:
    """``5kB`` is a size, and a single value is a sweep of one."""
    settings = ObjectStoreSettings.model_validate({"object_bytes": "5kB", "operations": "get"})
    assert (settings.object_bytes, settings.operations) == ((5_000,), ("get",))


def test_targets_are_told_apart() -> None:
    """Two targets with one label would have one name in the report."""
    target = {"label": "s3", "uri": "s3://bucket/prefix"}
    with pytest.raises(ValidationError, match="two targets are labelled 's3'"):
        ObjectStoreSettings.model_validate({"targets": [target, target]})


@pytest.mark.parametrize("label", ["", "a/b", "a b"])
def test_a_label_is_one_word(label: str) -> None:
    """Labels become part of names."""
    with pytest.raises(ValidationError, match="label"):
        ObjectStoreSettings.model_validate({"targets": [{"label": label}]})


def test_multipart_needs_more_than_one_part() -> None:
    """A multipart sweep without an object of two parts is refused, and says what to change."""
    small = {"object_bytes": [5_000], "at_object_bytes": 100_000}
    with pytest.raises(ValidationError, match="raise object_bytes above 8388608"):
        ObjectStoreSettings.model_validate(small)
    ObjectStoreSettings.model_validate({**small, "operations": ["get", "put"]})
