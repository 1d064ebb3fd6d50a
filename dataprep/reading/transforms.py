"""Transforms of encoded images: functions that take a generator, or one Pillow image."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from inspect import Parameter
from typing import Any, ClassVar, TypeAlias, cast

import numpy as np
from PIL import Image

from dataprep.errors import ConfigError
from dataprep.formats.protocol import Buffer
from dataprep.image.rgb import decode_rgb
from dataprep.reading.augment import Augmentation

Transform: TypeAlias = Callable[[Buffer, np.random.Generator], Any]
"""A function of an encoded image and a random generator. Its result becomes the sample."""

AnyTransform: TypeAlias = Transform | Callable[[Image.Image], Any]
"""A ``Transform``, or a function of one Pillow image, such as a transform of torchvision."""

# Parameters whose arguments can be passed by position.
_BY_POSITION = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


@dataclass(frozen=True)
class PillowTransform:
    """A transform that decodes an image and calls a function with it as a Pillow image.

    ``to_torch`` wraps a transform of one argument, such as one of torchvision, in it. The Pillow
    image is RGB and has its own size. Transparent pixels are on a white background. The EXIF
    orientation is not applied.

    The function draws its own random numbers, usually from the generator of torch. They do not
    depend on the number of the sample. Another number of threads or workers therefore gives other
    crops.

    Attributes:
        function: called with a ``PIL.Image.Image``. Its result becomes the sample.
        random: False, because results do not depend on the epoch that ``set_epoch`` sets.

    Example:
        >>> transform = dataprep.PillowTransform(lambda image: image.size)
        >>> images = dataprep.to_torch(dataprep.open("out"), transform=transform)
        >>> (width, height), label = images[0]
    """

    function: Callable[[Image.Image], Any]
    random: ClassVar[bool] = False

    def __call__(self, data: Buffer, rng: np.random.Generator) -> Any:
        """Decode an image, and return the result of the function.

        Raises:
            ImageError: the data is not an image, or cannot be decoded.
        """
        return self.function(Image.fromarray(decode_rgb(data)))


def as_transform(function: AnyTransform) -> Transform:
    """Return the function if it takes an image and a generator, or else its ``PillowTransform``.

    The parameters of the function decide. For a module of torch, these are the parameters of
    ``forward``. A function whose parameters are unknown is returned as it is.

    Raises:
        ConfigError: the function takes other arguments.
    """
    forward = getattr(function, "forward", None)
    try:
        signature = inspect.signature(forward or function)
    except (TypeError, ValueError):  # some functions written in C have no signature
        return cast(Transform, function)
    takes_pillow_image = _takes_one_image(signature, is_module=forward is not None)
    if takes_pillow_image is None:
        raise ConfigError(
            f"transform {function!r} takes {signature}: give a function of an encoded image and a "
            "generator, or of one Pillow image; dataprep.PillowTransform(function) calls any "
            "function with a Pillow image alone"
        )
    if takes_pillow_image:
        return PillowTransform(cast("Callable[[Image.Image], Any]", function))
    return cast(Transform, function)


def _takes_one_image(signature: inspect.Signature, *, is_module: bool) -> bool | None:
    """Whether a function takes one image, rather than an image and a generator.

    Returns None if the signature does not show it.
    """
    parameters = signature.parameters.values()
    if any(parameter.kind is Parameter.VAR_POSITIONAL for parameter in parameters):
        # Version 2 of torchvision's transforms takes any number of arguments.
        return is_module
    by_position = [parameter for parameter in parameters if parameter.kind in _BY_POSITION]
    if not by_position:
        return None
    if len(by_position) == 1:
        return True
    second = by_position[1]
    if any(parameter.default is Parameter.empty for parameter in by_position[2:]):
        return None
    if second.default is Parameter.empty or second.default is None:
        return False  # the second parameter is the generator, often as ``rng=None``
    # The second parameter is a setting such as ``size=224``, which a generator must not replace.
    return None


def has_write(transform: object) -> bool:
    """Whether a transform can write into a batch: it has a method ``write``.

    It must then also have ``shape`` and ``dtype``. A subclass of ``Augmentation`` that overrides
    ``__call__`` does not count, because its ``write`` would give another result.
    """
    if isinstance(transform, Augmentation):
        return type(transform).__call__ is Augmentation.__call__
    return hasattr(transform, "write")
