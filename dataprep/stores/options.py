"""The options of a store. Credentials are not among them: boto3 finds them by its own rules."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from dataprep.credentials import check_no_credentials


class StoreOptions(BaseModel):
    """The options of an S3 endpoint. Other stores ignore them.

    Example:
        >>> options = dataprep.StoreOptions(endpoint_url="http://localhost:9000")
        >>> options.max_attempts
        8
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True, use_attribute_docstrings=True
    )

    endpoint_url: str | None = None
    """Address of an S3 server other than AWS."""

    profile: str | None = None
    """Profile in the configuration files of AWS."""

    region: str | None = None
    """Region of the bucket. (default: from the environment)"""

    storage_class: str | None = None
    """Storage class of objects that are written."""

    sse: Literal["AES256", "aws:kms", "aws:kms:dsse"] | None = None
    """Server-side encryption of objects that are written."""

    sse_kms_key_id: str | None = None
    """KMS key for the encryption."""

    requester_pays: bool = False
    """Whether the caller pays for requests."""

    max_attempts: Annotated[int, Field(ge=1, le=50)] = 8
    """Maximum number of attempts for each request."""

    connect_timeout_s: Annotated[float, Field(gt=0)] = 10.0
    """Seconds to wait for a connection."""

    read_timeout_s: Annotated[float, Field(gt=0)] = 60.0
    """Seconds to wait for the next byte of an answer."""

    @field_validator("endpoint_url")
    @classmethod
    def _is_a_plain_url(cls, value: str | None) -> str | None:
        if value is None:
            return None
        if not value.startswith(("http://", "https://")):
            raise ValueError("must begin with http:// or https://")
        return check_no_credentials(value)
