"""Which server a client is to speak to that does not ask boto3."""

from __future__ import annotations

import os

from dataprep.stores import StoreOptions


def endpoint_url(options: StoreOptions) -> str | None:
    """What the options say, else the environment as boto3 reads it; None for Amazon's own."""
    environment = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    return options.endpoint_url or environment or None
