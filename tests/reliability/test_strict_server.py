"""The short form: each refusal, a lease that changes hands, and jobs under two of the faults."""

from __future__ import annotations

import os
import random
from pathlib import Path

from dataprep.sample import draw_tree
from tests.reliability.strict_server import FAULTS, SEED, jobs, leases, refusals
from tests.servers.radosgw import RadosGateway


def test_nothing_is_lost_on_a_strict_server(
    radosgw: RadosGateway,
    radosgw_bucket: str,
    tmp_path: Path,
) -> None:
    """With the seed that is printed: ``DATAPREP_SEED`` gives another."""
    seed = int(os.environ.get("DATAPREP_SEED", SEED))
    print(f"strict_server: seed {seed}")  # noqa: T201
    rng = random.Random(seed)
    tree = draw_tree(tmp_path / "photos", images=40, classes=4, seed=7).root
    faults = rng.sample(sorted(FAULTS), 2)
    rows = [*refusals(radosgw, 1), *jobs(radosgw, tree, 1, rng, faults), leases(radosgw, 1)]
    assert [row for row in rows if row.lost] == []
    assert len(rows) == 7
