"""What a mount is taken for."""

from __future__ import annotations

from iobench.targets.classify import classify
from iobench.targets.description import Device, Mounted

EBS = Device("nvme0n1", model="Amazon Elastic Block Store", transport="pcie")
SSD = Device("nvme1n1", model="SSD", transport="pcie")
ROOT = Mounted("ext4", "/dev/root", devices=(Device("nvme0n1p1", "partition", below=(EBS,)),))


def test_a_file_system_on_a_disk() -> None:
    """The device's kind, and the way down to it."""
    found = classify(ROOT)
    assert (found.kind, found.device) == ("ebs", EBS)
    assert found.stack == ("ext4", "partition", "Amazon EBS (Amazon Elastic Block Store)")
    assert found.why == "its model is Amazon Elastic Block Store"


def test_a_file_system_over_several_disks() -> None:
    """btrfs takes devices together without a RAID below it."""
    other = Device("nvme2n1", model="SSD", transport="pcie")
    found = classify(Mounted("btrfs", "/dev/nvme1n1", devices=(SSD, other)))
    assert found.kind == "nvme"
    assert found.stack == ("btrfs", "volume of 2", "2 × NVMe (SSD)")


def test_layers_that_are_seen_and_layers_that_are_not() -> None:
    """The kind stays overlay: a read may come from any layer."""
    hidden = classify(Mounted("overlay", "overlay"))
    assert (hidden.kind, hidden.device, hidden.stack) == ("overlay", None, ("overlay",))
    assert "cannot be seen from here" in hidden.why
    seen = classify(Mounted("overlay", "overlay", lower=ROOT))
    assert (seen.kind, seen.device) == ("overlay", EBS)
    assert seen.stack[:2] == ("overlay", "ext4")
    assert "written to ext4: its model is Amazon Elastic Block Store" in seen.why


def test_a_loop_device_is_what_its_file_lies_on() -> None:
    """Also through a partition in it; where the file is not seen, it is unknown."""
    loop = Device("loop0", "loop", backing=ROOT)
    found = classify(
        Mounted("xfs", "/dev/loop0p1", devices=(Device("p1", "partition", below=(loop,)),))
    )
    assert (found.kind, found.device) == ("ebs", EBS)
    assert found.stack[:4] == ("xfs", "partition", "loop device", "ext4")
    unseen = classify(Mounted("xfs", devices=(Device("loop0", "loop"),)))
    assert unseen.kind == "unknown"
    assert "below the loop device cannot be seen" in unseen.why


def test_nothing_is_guessed() -> None:
    """No device, and a type that nobody knows."""
    for mounted in (Mounted("newfs", "x"), Mounted("ext4", "/dev/sda1"), Mounted("")):
        found = classify(mounted)
        assert (found.kind, found.device) == ("unknown", None)
        assert found.why
