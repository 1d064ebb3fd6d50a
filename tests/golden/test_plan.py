"""A plan assigns each sample to the same place as when the plan format was fixed."""

from __future__ import annotations

import hashlib
import io

import numpy as np
import pyarrow.parquet as pq
import pytest

from dataprep.config.shard_config import ShardConfig
from dataprep.job.calibration import Calibration
from dataprep.job.split_planning import make_plans
from dataprep.labels import LabelSpace
from dataprep.sources import Listing, Problem

CALIBRATION = Calibration(((20_000, 15_000), (90_000, 38_000), (400_000, 70_000)))
EXPECTED: dict[str, dict[str, str]] = {
    "plain": {"train": "767ff8bf153445c3c3660315233132820415b0473dc2b1cacbfeeabb56bd2690"},
    "held out": {
        "train": "36e3cfbf7953174e7e5fcf34f8f41734eaf75198a56a4f9483097458a55caeaa",
        "validation": "812abf16058de742c184dd176afcefdcfdfb844a7559ed8ffaecfadd4fb6e4bd",
    },
    "in archives": {"train": "0abc6ceec6c4d882f8947b197d007dc5ff447b6083689ea4ab6062abc90a8fcb"},
}
LISTINGS = [
    "47769a982223d5e4b488bb1b6444a7e7eefb79ce16a580f117defa03d1ae1cbc",
    "33a1da318220ca54b1f15a6118e043f955d6e8c12f3a6a7feb968657030a8d10",
]


def listing(*, archives: bool) -> Listing:
    """5,000 samples in 20 classes, with odd names and some entries that are not samples."""
    names, classes = [], []
    for i in range(5_000):
        group = f"n{i % 20:08d}"
        odd = {7: "tab\there", 11: "line\nfeed", 13: "back\\slash", 17: "\udcff\udcfe", 19: "ä"}
        names.append(f"{group}/{group}_{i}{odd.get(i, '')}.JPEG")
        classes.append(group)
    order = sorted(range(len(names)), key=lambda i: names[i].encode("utf-8", "surrogateescape"))
    sizes = (np.arange(5_000, dtype=np.int64) * 7_919) % 390_000 + 5_000
    problems = {4: Problem("failed", "broken symlink"), 9: Problem("skipped", "hidden")}
    return Listing(
        [names[i] for i in order],
        sizes,
        [classes[i] for i in order],
        problems,
        [f"{classes[i]}.tar" for i in order] if archives else [],
        np.arange(5_000 if archives else 0, dtype=np.int64) * 512,
    )


def digests(data: bytes) -> str:
    """Digests of the values of a stored plan. The bytes of Parquet files are up to Arrow."""
    table = pq.read_table(io.BytesIO(data))
    digest = hashlib.sha256()
    for name in table.column_names:
        digest.update(f"{name} {table[name].type} {table[name].to_pylist()}".encode())
    return digest.hexdigest()


@pytest.mark.parametrize("case", EXPECTED)
def test_the_plan_is_what_it_always_was(case: str) -> None:
    """Order, splits, cuts and names of a plan never change for the same listing."""
    config = ShardConfig(
        source="in", output="out", seed=3, validation="7%" if case == "held out" else None
    )
    listed = listing(archives=case == "in archives")
    plans = make_plans(listed, LabelSpace.of(listed.classes), CALIBRATION, config)
    assert {split: digests(plan.to_parquet()) for split, plan in plans.items()} == EXPECTED[case]


def test_the_listing_is_what_it_always_was() -> None:
    """The digest by which a resumed job recognises its source never changes."""
    assert [listing(archives=a).digest() for a in (False, True)] == LISTINGS
