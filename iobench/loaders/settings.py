"""The settings of a loader, and the augmentation that follows from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

if TYPE_CHECKING:
    from dataprep.reading.augment import Augmentation

BatchSize = Annotated[int, Field(ge=1, le=1_000_000)]
Workers = Annotated[int, Field(ge=0, le=1024)]
Prefetch = Annotated[int, Field(ge=1, le=1024)]
ItemSeconds = Annotated[float, Field(ge=0, le=3600)]
ImageSize = Annotated[int, Field(ge=16, le=1024)]

COLOUR_JITTER = 0.4
"""Largest change of brightness, contrast and saturation with ``colour_jitter``, as a share."""

PCA_NOISE = 0.1
"""Standard deviation of the lighting noise with ``pca_noise``. This value is usual for ImageNet."""


class ImageSettings(BaseModel):
    """What a loader does with each decoded image.

    Trials and the analysis take these keys and their defaults from here. Grids of loaders and
    training loops have keys with the same names.

    Attributes:
        augment: draw a random resized crop and a flip; otherwise resize the image and crop it at
            its centre.
        colour_jitter: also change brightness, contrast and saturation. Needs ``augment``.
        pca_noise: also add noise along the principal components of ImageNet's colours. Needs
            ``augment``.
        normalise: give float32 images of mean 0 and deviation 1; otherwise give uint8 images.
        image_size: the side of the square images in batches, in pixels.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    augment: bool = True
    colour_jitter: bool = False
    pca_noise: bool = False
    normalise: bool = True
    image_size: ImageSize = 224


class LoaderSettings(ImageSettings):
    """The settings of one loader: one point of a grid of loaders.

    Attributes:
        batch_size: samples in a batch.
        workers: processes or threads that load; with 0 the training process loads.
        prefetch: batches that are made ahead; for torch and ``mock``, by each worker.
        decode: whether images are decoded; otherwise batches contain encoded bytes.
        pin_memory: whether batches are in page-locked memory (torch with CUDA).
        shuffle: whether the samples of an epoch come in random order.
        shuffle_buffer: samples in the buffer from which loaders of sequences draw the next sample;
            with 0 each loader shuffles in its own way.
        seed: seed of the order and of the augmentation.
        item_s: seconds that the loader ``mock`` takes for each sample.
        rank, world_size: this process is number ``rank`` of ``world_size`` processes that train
            together. A loader that is ``by_rank`` gives each of them its own samples.
    """

    batch_size: BatchSize = 64
    workers: Workers = 0
    prefetch: Prefetch = 2
    decode: bool = True
    pin_memory: bool = False
    shuffle: bool = True
    shuffle_buffer: Annotated[int, Field(ge=0)] = 0
    seed: int = 0
    item_s: ItemSeconds = 0.0
    rank: Annotated[int, Field(ge=0)] = 0
    world_size: Annotated[int, Field(ge=1)] = 1


def augmentation_of(
    settings: ImageSettings, layout: Literal["CHW", "HWC"] = "CHW", *, decoded: bool = False
) -> Augmentation:
    """Return the augmentation that these settings describe.

    Args:
        settings: the settings of a loader.
        layout: the order of the axes of an image: channels, height and width.
        decoded: whether the images are stored as pixels (``iobench.data.pixels``), not encoded.
    """
    from dataprep.reading.augment import Augmentation
    from iobench.data.pixels import PixelAugmentation

    augmentation = PixelAugmentation if decoded else Augmentation
    return augmentation(
        size=settings.image_size,
        random=settings.augment,
        jitter=COLOUR_JITTER if settings.colour_jitter else 0.0,
        noise=PCA_NOISE if settings.pca_noise else 0.0,
        normalise=settings.normalise,
        layout=layout,
    )
