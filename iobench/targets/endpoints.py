"""Where requests to a store go, as boto3 itself works it out; nothing is sent."""

from __future__ import annotations

from dataprep.stores import StoreOptions


def endpoint_of(options: StoreOptions) -> tuple[str | None, str | None]:
    """URL and region: of the options, the environment or the profile; None for what is not told."""
    import boto3
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError

    try:
        session = boto3.Session(profile_name=options.profile, region_name=options.region)
        client = session.client(
            "s3", endpoint_url=options.endpoint_url, config=Config(signature_version="s3v4")
        )
        try:
            return client.meta.endpoint_url, session.region_name
        finally:
            client.close()
    except (BotoCoreError, ValueError, OSError):
        return options.endpoint_url, options.region
