"""Presets are what is known, each under its name."""

from __future__ import annotations

from iobench.consumers.presets import PRESETS


def test_three_generations_are_known_by_their_rates() -> None:
    """V100, A100 and H100 train ResNet-50 at the rates that are published."""
    rates = {name: PRESETS[name].images_per_s for name in ("V100", "A100", "H100")}
    assert rates == {"V100": 1_200, "A100": 2_470, "H100": 7_000}


def test_every_preset_has_its_own_name_and_a_source() -> None:
    """No figure stands without where it is from."""
    assert all(preset.name == name and preset.source for name, preset in PRESETS.items())
