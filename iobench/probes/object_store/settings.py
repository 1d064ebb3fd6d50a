"""Which object stores are probed, with what."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ByteSize,
    ConfigDict,
    Field,
    field_validator,
    model_validator,
)

from iobench.data.settings import BucketSettings
from iobench.probes.object_store.clients import CLIENTS
from iobench.several import Several

Operation = Literal["get", "range_get", "put", "multipart"]

_SIZES = (5_000, 100_000, 1_000_000, 8_000_000, 32_000_000, 128_000_000)
_MAX_OBJECT_BYTES = 5 * 10**9  # S3's limit for one PUT
_MIN_PART_BYTES = 5 * 2**20  # S3's limit for every part but the last


ClientName = Annotated[str, AfterValidator(CLIENTS.check)]


class StoreTarget(BucketSettings):
    """A bucket, a prefix to write below, and what that is called in the report."""

    label: Annotated[str, Field(min_length=1, pattern=r"^[^/\s]+$")] = "s3"
    """What the report calls it."""


class ObjectStoreSettings(BaseModel):
    """Two sweeps for each target, client and operation.

    Over ``object_bytes`` at ``at_connections``, and over ``connections`` at ``at_object_bytes``;
    their full product would answer no further question.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    targets: tuple[StoreTarget, ...] = (StoreTarget(),)
    """Stores to probe, each a bucket and a prefix to write below."""

    clients: Several[ClientName] = ("boto3", "obstore")
    """Ways to talk to them: `boto3`, `awscrt`, `obstore`, `s3torchconnector`, `s5cmd` and
    `awscli` (whole objects), and those of other packages."""

    operations: Several[Operation] = ("get", "range_get", "put", "multipart")
    """What is done."""

    object_bytes: Several[Annotated[ByteSize, Field(ge=1, le=_MAX_OBJECT_BYTES)]] = tuple(
        map(ByteSize, _SIZES)
    )
    """Sizes of an object, varied at `at_connections`."""

    connections: Several[Annotated[int, Field(ge=1, le=1024)]] = (1, 2, 4, 8, 16, 32, 64)
    """Requests side by side, varied at `at_object_bytes`."""

    at_object_bytes: Annotated[ByteSize, Field(ge=1, le=_MAX_OBJECT_BYTES)] = ByteSize(8_000_000)
    """Object size while the connections vary."""

    at_connections: Annotated[int, Field(ge=1, le=1024)] = 8
    """Connections while the object size varies."""

    seconds: Annotated[float, Field(gt=0, le=3600)] = 3.0
    """That a trial lasts at most."""

    max_requests: Annotated[int, Field(ge=1, le=10**9)] = 20_000
    """After which a trial ends, too."""

    part_bytes: Annotated[ByteSize, Field(ge=_MIN_PART_BYTES, le=_MAX_OBJECT_BYTES)] = ByteSize(
        8 * 2**20
    )
    """Size of a part of `multipart`."""

    pool_bytes: Annotated[ByteSize, Field(ge=1, le=10**15)] = ByteSize(256_000_000)
    """Bound of the objects of one size that lie in the store at a time."""

    @field_validator("targets")
    @classmethod
    def _are_told_apart(cls, targets: tuple[StoreTarget, ...]) -> tuple[StoreTarget, ...]:
        labels = [target.label for target in targets]
        twice = sorted({label for label in labels if labels.count(label) > 1})
        if twice:
            raise ValueError(f"two targets are labelled {twice[0]!r}: give each a label of its own")
        return targets

    @model_validator(mode="after")
    def _has_parts(self) -> Self:
        largest = max(*self.object_bytes, self.at_object_bytes)
        if "multipart" in self.operations and largest <= self.part_bytes:
            raise ValueError(
                "multipart needs an object of more than one part: raise object_bytes above "
                f"{int(self.part_bytes)}, or leave multipart out of operations"
            )
        return self
