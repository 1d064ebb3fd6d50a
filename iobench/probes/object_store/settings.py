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
    """A prefix to write below, and what it is called in the report."""

    label: Annotated[str, Field(min_length=1, pattern=r"^[^/\s]+$")] = "s3"


class ObjectStoreSettings(BaseModel):
    """Two sweeps for each target, client and operation.

    Over ``object_bytes`` at ``at_connections``, and over ``connections`` at ``at_object_bytes``;
    their full product would answer no further question. A trial ends after ``seconds`` or
    ``max_requests``, whichever comes first. ``pool_bytes`` bounds the objects of one size that
    lie in the store at a time.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    targets: tuple[StoreTarget, ...] = (StoreTarget(),)
    clients: Several[ClientName] = ("boto3", "obstore")
    operations: Several[Operation] = ("get", "range_get", "put", "multipart")
    object_bytes: Several[Annotated[ByteSize, Field(ge=1, le=_MAX_OBJECT_BYTES)]] = tuple(
        map(ByteSize, _SIZES)
    )
    connections: Several[Annotated[int, Field(ge=1, le=1024)]] = (1, 2, 4, 8, 16, 32, 64)
    at_object_bytes: Annotated[ByteSize, Field(ge=1, le=_MAX_OBJECT_BYTES)] = ByteSize(8_000_000)
    at_connections: Annotated[int, Field(ge=1, le=1024)] = 8
    seconds: Annotated[float, Field(gt=0, le=3600)] = 3.0
    max_requests: Annotated[int, Field(ge=1, le=10**9)] = 20_000
    part_bytes: Annotated[ByteSize, Field(ge=_MIN_PART_BYTES, le=_MAX_OBJECT_BYTES)] = ByteSize(
        8 * 2**20
    )
    pool_bytes: Annotated[ByteSize, Field(ge=1, le=10**15)] = ByteSize(256_000_000)

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
