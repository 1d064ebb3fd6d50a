"""Bytes of network interfaces as the kernel counts them."""

from __future__ import annotations

from pathlib import Path

import pytest

from iobench.errors import Unavailable
from iobench.samplers.network import NetworkSampler


def write(proc: Path, **counted: tuple[int, int]) -> None:
    """``/proc/net/dev`` with bytes received and sent by interface."""
    (proc / "net").mkdir(exist_ok=True)
    zeros = "0 0 0 0 0 0"
    lines = [f"{name}: {got} 1 {zeros} {sent} 1 {zeros}" for name, (got, sent) in counted.items()]
    (proc / "net" / "dev").write_text("Inter-| Receive\n face |bytes\n" + "\n".join(lines) + "\n")


def cards(folder: Path, *names: str) -> Path:
    """``/sys/class/net`` with these cards."""
    for name in names:
        (folder / "class" / name / "device").mkdir(parents=True)
    return folder / "class"


def test_cards_are_counted_and_bridges_are_not(tmp_path: Path) -> None:
    """What goes through both is one byte; the loopback stands apart."""
    shown = cards(tmp_path, "eth0", "eth1")
    write(tmp_path, lo=(1, 1), eth0=(0, 0), eth1=(0, 0), docker0=(0, 0))
    sampler = NetworkSampler(1, tmp_path, shown)
    assert sampler.read(0.0) == {}
    write(tmp_path, lo=(9, 9), eth0=(100, 10), eth1=(20, 6), docker0=(100, 10))
    assert sampler.read(2.0) == {
        "received_bytes_per_s": 60,
        "sent_bytes_per_s": 8,
        "loopback_bytes_per_s": 4,
    }


def test_without_a_card_all_but_the_loopback_count(tmp_path: Path) -> None:
    """So in a container, whose interface is no card."""
    write(tmp_path, lo=(0, 0), eth0=(0, 0))
    sampler = NetworkSampler(1, tmp_path, cards(tmp_path))
    sampler.read(0.0)
    write(tmp_path, lo=(0, 0), eth0=(7, 5))
    assert sampler.read(1.0)["received_bytes_per_s"] == 7


def test_a_loopback_alone_is_no_network(tmp_path: Path) -> None:
    """Columns of cards are not there rather than 0."""
    write(tmp_path, lo=(0, 0))
    sampler = NetworkSampler(1, tmp_path, cards(tmp_path))
    sampler.read(0.0)
    assert sampler.read(1.0) == {"loopback_bytes_per_s": 0}


def test_no_such_file_is_unavailable(tmp_path: Path) -> None:
    """Nothing is made up."""
    with pytest.raises(Unavailable, match="no bytes of the network"):
        NetworkSampler(1, tmp_path)
