"""Tests of iobench.sidebyside.record_peers."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from iobench.sidebyside import passes, record_peers
from iobench.sidebyside.passes import PASSES, RECORDIO, TFRECORDS
from iobench.sidebyside.workplace import Workplace

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory, few: Path) -> str:
    """Six images as shards in both formats."""
    return str(Workplace(tmp_path_factory.mktemp("peers"), few, 6).sharded(6))


@pytest.mark.frameworks
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    ("peer", "needs"),
    [
        ("tf_write", "tensorflow"),
        ("tf_read", "tensorflow"),
        ("tf_read_batched", "tensorflow"),
        ("mxnet_write", "mxnet"),
        ("mxnet_write_indexed", "mxnet"),
        ("mxnet_read", "mxnet"),
        ("mxnet_read_indexed", "mxnet"),
    ],
)
def test_every_peer_takes_every_record(
    peer: str, needs: str, shards: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The MB of all payloads, as often as there are passes; nothing is left over."""
    if find_spec(needs) is None:
        pytest.skip(f"{needs} is not installed")
    monkeypatch.setattr(passes, "RAM", tmp_path)
    measured = getattr(record_peers, peer)(shards)
    framing = TFRECORDS if needs == "tensorflow" else RECORDIO
    size = sum(map(len, framing.payloads(shards)))
    assert measured.amount == pytest.approx(PASSES * size / 1e6)
    assert measured.seconds > 0
    assert not list(tmp_path.iterdir())
