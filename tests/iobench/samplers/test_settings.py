"""How often, and what."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from iobench.samplers import SAMPLERS
from iobench.samplers.settings import SamplingSettings


@pytest.mark.parametrize("per_s", [0, 0.5, 10.1, -1])
def test_readings_are_1_to_10_a_second(per_s: float) -> None:
    """Rarer says nothing of a step, oftener costs what it measures."""
    with pytest.raises(ValidationError, match="per_s"):
        SamplingSettings(per_s=per_s)


def test_what_is_unknown_is_refused_with_what_is_known() -> None:
    """By name."""
    with pytest.raises(ValidationError, match="no sampler 'gpus': use one of cpu, disk, gpu"):
        SamplingSettings(samplers=("gpus",))


def test_one_may_stand_for_a_list_and_none_is_off() -> None:
    """As in other parts of a config."""
    assert SamplingSettings.model_validate({"samplers": "cpu"}).samplers == ("cpu",)
    assert SamplingSettings.model_validate({"samplers": []}).samplers == ()


def test_all_of_our_own_are_usual() -> None:
    """A sampler that is registered is read unless told otherwise."""
    assert set(SamplingSettings().samplers) <= set(SAMPLERS.names())
