"""PURE. What a batch must be before a training step takes it."""

from __future__ import annotations

from collections.abc import Sequence

from iobench.errors import TrialFailed

# Mean and standard deviation of ImageNet's red, green and blue, for pixels from 0 to 1.
MEAN = (0.485, 0.456, 0.406)
STD = (0.229, 0.224, 0.225)


def check_arrays(images: object, labels: object, kind: type, called: str) -> None:
    """Both are arrays of one framework: ``kind``, for people ``called``.

    Raises:
        TrialFailed: they are not, or the images are still encoded.
    """
    for part, value in (("images", images), ("labels", labels)):
        if isinstance(value, kind):
            continue
        holds = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
        hint = "its loader must decode" if holds in ("list", "bytes") else "take its own loader"
        raise TrialFailed(f"this consumer takes {called}, but {part} are {holds}: {hint}")


def check_images(shape: Sequence[int], dtype: str, image_size: int, *, channels_last: bool) -> None:
    """Images are (N, 3, S, S), or (N, S, S, 3), of float32 or uint8; S is ``image_size``.

    Raises:
        TrialFailed: they are not.
    """
    side = (image_size, image_size)
    wanted = (*side, 3) if channels_last else (3, *side)
    if tuple(shape[1:]) != wanted:
        raise TrialFailed(
            f"images have the shape {tuple(shape)}, where this consumer was set up for "
            f"(N, {', '.join(map(str, wanted))}): give loader and consumer the same image_size"
        )
    if dtype not in ("float32", "uint8"):
        raise TrialFailed(f"images are {dtype}, where float32 or uint8 is expected")


def check_labels(lowest: int, highest: int, classes: int) -> None:
    """Labels are indices of ``classes`` classes.

    Raises:
        TrialFailed: one is outside.
    """
    if lowest < 0 or highest >= classes:
        outside = lowest if lowest < 0 else highest
        raise TrialFailed(
            f"label {outside} is outside 0 to {classes - 1}: the consumer was set up for "
            f"{classes} classes, so set classes to what the data has"
        )
