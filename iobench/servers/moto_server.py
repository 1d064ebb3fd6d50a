"""A local S3 server: moto in a process of its own, on the loopback interface."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

from iobench.machine.processes import starting

# Requests do not use the proxies of the environment.
_OPENER_WITHOUT_PROXY = urllib.request.build_opener(urllib.request.ProxyHandler({}))
_SERVER_CODE = """
import sys, threading
from iobench.machine.processes import end_with_parent
end_with_parent(int(sys.argv[1]))
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
threading.Event().wait()
"""


class MotoServer:
    """The S3 server moto, which runs during the ``with`` block and keeps all objects in memory.

    It accepts any credentials, but clients must have some: see ``ENVIRONMENT``.

    Attributes:
        url: the URL of the server, within the block.

    Raises:
        RuntimeError: moto is not installed (extra ``demo``), or does not start.
        TrialFailed: the system refuses to start a process.
    """

    ENVIRONMENT = {  # noqa: RUF012  a constant
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": "us-east-1",
        "NO_PROXY": "127.0.0.1",
        "no_proxy": "127.0.0.1",
    }

    def __enter__(self) -> MotoServer:
        with starting("moto's S3 server"):
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", _SERVER_CODE, str(os.getpid())],
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                start_new_session=True,  # Ctrl-C in a terminal must not end the server.
            )
        assert self._process.stdout is not None  # noqa: S101  it is a pipe
        port = self._process.stdout.readline().strip()
        if not port:
            self._process.communicate()
            if importlib.util.find_spec("moto") is None:
                raise RuntimeError("moto is not installed: pip install 'dataprep-iobench[demo]'")
            raise RuntimeError(f"moto's S3 server ended with exit code {self._process.returncode}")
        self.url = f"http://127.0.0.1:{port}"
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.communicate()

    def create_bucket(self, name: str) -> None:
        """Create an empty bucket."""
        request = urllib.request.Request(f"{self.url}/{name}", method="PUT")  # noqa: S310
        with _OPENER_WITHOUT_PROXY.open(request, timeout=60):
            pass


@contextmanager
def signed_in() -> Iterator[None]:
    """Set credentials for ``MotoServer`` as environment variables in the ``with`` block.

    The names of profiles are removed, since a profile may have other credentials.
    """
    before = dict(os.environ)
    for name in ("AWS_PROFILE", "AWS_DEFAULT_PROFILE"):
        os.environ.pop(name, None)
    os.environ.update(MotoServer.ENVIRONMENT)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
