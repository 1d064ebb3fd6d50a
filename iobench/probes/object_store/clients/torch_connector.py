"""s3torchconnector: Amazon's data sets for PyTorch, Mountpoint's client below them."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from dataprep.names import escape
from dataprep.stores.s3_bucket import S3Bucket
from iobench.clock import Clock
from iobench.errors import TrialFailed, Unavailable
from iobench.probes.object_store.clients.endpoints import endpoint_url
from iobench.trial import Place


class S3TorchConnector:
    """A map-style data set of all objects below a prefix, read by as many threads as connections.

    It asks for whole objects and stores in parts of its own choice, so that it takes part in
    ``get`` alone. One listing tells the sizes, as it does for a loader.
    """

    notes: Sequence[str] = (
        "connections are objects at a time: s3torchconnector opens as many as it likes for each",
        "s3torchconnector has no read timeout: a store that falls silent ends the trial",
    )

    def __init__(self, place: Place, connections: int, clock: Clock) -> None:
        try:
            import s3torchconnector
        except ImportError:
            raise Unavailable(
                "s3torchconnector is not installed: pip install s3torchconnector"
            ) from None
        self._module: Any = s3torchconnector
        self._bucket = S3Bucket(place.uri, place.store)
        self._connections = connections
        self._datasets: dict[str, Any] = {}

    def copy(self, prefix: str, folder: Path) -> None:
        """Copy all objects below ``prefix`` into ``folder``."""
        dataset = self._dataset(prefix)

        def save(index: int) -> None:
            reader = dataset[index]
            (folder / Path(reader.key).name).write_bytes(reader.read())

        try:
            with ThreadPoolExecutor(self._connections) as threads:
                for _ in threads.map(save, range(len(dataset))):
                    pass
        except self._module.S3Exception as error:
            words = " ".join(str(error).split())
            raise TrialFailed(f"s3torchconnector: {escape(words)}") from None

    def _dataset(self, prefix: str) -> Any:
        """That of a prefix; its client and its listing serve every copy."""
        if prefix not in self._datasets:
            self._datasets[prefix] = self._module.S3MapDataset.from_prefix(
                f"{self._bucket.uri}/{prefix}", **self._told()
            )
        return self._datasets[prefix]

    def _told(self) -> dict[str, Any]:
        import boto3

        options = self._bucket.options
        session = boto3.Session(profile_name=options.profile, region_name=options.region)
        endpoint = endpoint_url(options)
        config: dict[str, Any] = {
            # Other servers have no host names of buckets; one with dots has no certificate.
            "force_path_style": bool(endpoint) or "." in self._bucket.name,
            "max_attempts": options.max_attempts,
        }
        if options.profile:
            config["profile"] = options.profile
        if options.requester_pays:
            config["requester_pays"] = True
        return {
            "region": session.region_name or "us-east-1",
            "endpoint": endpoint,
            "s3client_config": self._module.S3ClientConfig(**config),
        }
