"""Parquet files with images, in the form of data set hubs."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


def images(*contents: bytes | None, prefix: str = "") -> pa.Array:
    """A column of images with a path for each, as data set hubs store them."""
    rows = [{"bytes": data, "path": f"{prefix}{row:04}.jpg"} for row, data in enumerate(contents)]
    return pa.array(rows, IMAGE)


def parquet_of(
    columns: Mapping[str, Any],
    *,
    names: Sequence[str] = (),
    features: Mapping[str, Any] | None = None,
    group: int = 4,
    **options: Any,
) -> bytes:
    """A Parquet file with row groups of ``group`` rows.

    ``names`` are the classes of the column ``label`` in the metadata of the schema. ``features``
    are all features in the metadata.
    """
    if names:
        features = {"label": {"_type": "ClassLabel", "names": [*names]}}
    table = pa.table(dict(columns))
    if features:
        content = json.dumps({"info": {"features": features}})
        table = table.replace_schema_metadata({"huggingface": content})
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=group, **options)
    return sink.getvalue()
