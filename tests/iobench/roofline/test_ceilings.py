"""What the way to a target or a store can carry."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.result import Result
from iobench.roofline.ceilings import Ceiling, binding, network, of_store, of_target


def machine(
    target: dict[str, Any] | None = None,
    store: dict[str, Any] | None = None,
    *,
    networks: tuple[dict[str, Any], ...] = (),
    instance: dict[str, Any] | None = None,
    **limits: Any,
) -> Result:
    """A result without trials, of a machine with one target and one store."""
    environment: dict[str, Any] = {"networks": list(networks)}
    environment["targets"] = {"disk": target} if target is not None else {}
    environment["stores"] = {"s3": store} if store is not None else {}
    known = {
        "as_of": "2026-08-18",
        "file": "f.yaml",
        "volumes": {"gp3": 125.0},
        "instance_type": "x1.large",
        "instance": instance,
    }
    config = {"limits": limits} if limits else {}
    return Result("r", "", environment, config, references={"limits": known})


def rates(found: list[Ceiling]) -> list[float]:
    """Their MB/s."""
    return [one.mb_per_s for one in found]


class TestTargets:
    def test_a_link_is_what_the_kernel_says(self) -> None:
        """PCI Express or SATA."""
        disk = {"kind": "sata", "device": {"link_mb_per_s": 600.0, "transport": "sata"}}
        (found,), why = of_target("disk", machine(disk))
        assert (found.mb_per_s, found.what, why) == (600.0, "its SATA port", "")

    def test_ebs_is_limited_by_the_instance_and_by_the_volume(self) -> None:
        """The volume's type is told by the config alone."""
        asked = machine(
            {"kind": "ebs"}, instance={"ebs_gbit_per_s": 8}, targets={"disk": {"volume": "gp3"}}
        )
        found, _ = of_target("disk", asked)
        assert rates(found) == [125 * 2**20 / 1e6, 1000.0]
        assert found[1].source == "f.yaml, as of 2026-08-18"

    def test_an_own_figure_stands_for_the_type(self) -> None:
        """More may be provisioned than is included."""
        told = {"disk": {"volume": "gp3", "mb_per_s": 900.0}}
        assert rates(of_target("disk", machine({"kind": "ebs"}, targets=told))[0]) == [900.0]

    def test_a_file_server_is_behind_the_network(self) -> None:
        """And a volume of EBS is not: it has bandwidth of its own."""
        card = {"mbit_per_s": 10_000, "count": 2}
        assert rates(of_target("disk", machine({"kind": "nfs"}, networks=(card,)))[0]) == [2500.0]
        assert of_target("disk", machine({"kind": "ebs"}, networks=(card,)))[0] == []

    def test_memory_has_no_link(self) -> None:
        """It is said, and no key is asked for."""
        assert of_target("disk", machine({"kind": "tmpfs"})) == (
            [],
            "memory: no link is on the way",
        )

    @pytest.mark.parametrize("target", [None, {}, {"kind": "virtio"}, {"kind": "of the future"}])
    def test_what_nobody_tells_is_unknown_and_names_the_key(
        self, target: dict[str, Any] | None
    ) -> None:
        """Also in results of other versions."""
        found, why = of_target("disk", machine(target))
        assert found == []
        assert "limits.targets.disk.mb_per_s" in why

    def test_older_results_know_nothing(self) -> None:
        """No references, no limits in the config."""
        old = Result("r", "", {}, {})
        assert of_target("disk", old)[0] == of_store("s3", old)[0] == network(old) == []


class TestStores:
    def test_a_server_on_this_machine_has_no_network_before_it(self) -> None:
        """Whatever the cards can do."""
        card = {"mbit_per_s": 1000, "count": 1}
        found, why = of_store("s3", machine(store={"kind": "own-server"}, networks=(card,)))
        assert found == []
        assert "on this machine" in why

    def test_others_are_behind_the_network(self) -> None:
        """With the user's own figure of the store beside it."""
        asked = machine(store={"kind": "aws-s3"}, network_gbit_per_s=8.0, stores={"s3": 500.0})
        assert rates(of_store("s3", asked)[0]) == [500.0, 1000.0]

    def test_a_card_that_tells_no_speed_may_be_the_fast_one(self) -> None:
        """So no sum of the others is a limit."""
        cards = ({"mbit_per_s": 1000, "count": 1}, {"driver": "ena", "count": 1})
        assert network(machine(networks=cards)) == []

    def test_what_is_guaranteed_is_marked(self) -> None:
        """More may come for a while."""
        (found,) = network(machine(instance={"network_baseline_gbit_per_s": 2.5}))
        assert (found.mb_per_s, found.guaranteed) == (312.5, True)


@given(st.lists(st.builds(Ceiling, st.floats(1, 1e6), st.text(), st.text(), st.booleans())))
def test_the_lowest_hard_ceiling_binds(ceilings: list[Ceiling]) -> None:
    """What is only guaranteed binds where nothing harder is known."""
    found = binding(ceilings)
    hard = [one.mb_per_s for one in ceilings if not one.guaranteed]
    if found is None:
        assert ceilings == []
    else:
        assert found.mb_per_s == min(hard or [one.mb_per_s for one in ceilings])
        assert found.guaranteed == (not hard)


def test_a_machine_that_the_file_does_not_know_is_named() -> None:
    """So that somebody adds it to a copy."""
    unlisted = machine({"kind": "ebs", "name": "EBS"}, {"kind": "aws-s3"})
    found, why = of_target("disk", unlisted)
    assert (found, why.split(":")[0]) == ([], "EBS tells none (f.yaml knows no x1.large)")
    assert "(f.yaml knows no x1.large): give limits.network" in of_store("s3", unlisted)[1]
