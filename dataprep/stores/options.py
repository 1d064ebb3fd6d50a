"""Options of a store. Credentials are none of them: they stay in boto3's own chain."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from dataprep.credentials import check_no_credentials


class StoreOptions(BaseModel):
    """Options of an S3 endpoint; other stores ignore them."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True, use_attribute_docstrings=True
    )

    endpoint_url: str | None = None
    """Address of a server other than AWS."""

    profile: str | None = None
    """Profile in boto3's files."""

    region: str | None = None
    """Region of the bucket. (default: from the environment)"""

    storage_class: str | None = None
    """Storage class of written objects."""

    sse: Literal["AES256", "aws:kms", "aws:kms:dsse"] | None = None
    """Encryption at rest."""

    sse_kms_key_id: str | None = None
    """KMS key of the encryption."""

    requester_pays: bool = False
    """The caller pays for requests."""

    max_attempts: Annotated[int, Field(ge=1, le=50)] = 8
    """Attempts per request."""

    connect_timeout_s: Annotated[float, Field(gt=0)] = 10.0
    """Seconds to connect."""

    read_timeout_s: Annotated[float, Field(gt=0)] = 60.0
    """Seconds without a byte."""

    @field_validator("endpoint_url")
    @classmethod
    def _is_a_plain_url(cls, value: str | None) -> str | None:
        if value is None:
            return None
        if not value.startswith(("http://", "https://")):
            raise ValueError("must begin with http:// or https://")
        return check_no_credentials(value)
