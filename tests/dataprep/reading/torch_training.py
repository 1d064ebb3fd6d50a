"""Marks and sizes that tests of training with torch share."""

from __future__ import annotations

import pytest

FEW_CORES = pytest.mark.filterwarnings("ignore:This DataLoader will create")
"""A DataLoader warns if it has more workers than this machine has processors."""
STYLES = pytest.mark.parametrize("iterable", [False, True], ids=["map", "iterable"])
STATEFUL = pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")
"""torchdata's StatefulDataLoader causes a warning of torch."""
GLOBAL_BATCH = 12
SAMPLES = 120
