"""An S3 endpoint of one's own: moto's server in a process of its own, on loopback."""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

_START_TIMEOUT_S = 60.0
_STARTS = 3  # a free port may be another's by the time that the server wants it
# Not by way of a proxy that the environment may name.
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
_SERVER = """
import sys
from iobench.machine.processes import end_with
end_with(int(sys.argv[1]))
from moto.server import main
main(["-H", "127.0.0.1", "-p", sys.argv[2]])
"""


class MotoServer:
    """Starts with the ``with`` block, ends with it, and keeps everything in its memory.

    It accepts any credentials, and some must be set: see ``ENVIRONMENT``.

    Raises:
        RuntimeError: moto is not installed (extra ``demo``) or does not answer.
    """

    ENVIRONMENT = {  # noqa: RUF012  a constant
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": "us-east-1",
        "NO_PROXY": "127.0.0.1",
        "no_proxy": "127.0.0.1",
    }

    def __enter__(self) -> MotoServer:
        for attempt in range(1, _STARTS + 1):
            self._start()
            try:
                self._wait()
                break
            except _Ended:
                if attempt == _STARTS:
                    raise
            except BaseException:
                self._stop()
                raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def create_bucket(self, name: str) -> None:
        """Make an empty bucket; whatever the environment says of proxies and profiles."""
        request = urllib.request.Request(f"{self.url}/{name}", method="PUT")  # noqa: S310
        with _DIRECT.open(request, timeout=_START_TIMEOUT_S):
            pass

    def _start(self) -> None:
        self.port = _free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _SERVER, str(os.getpid()), str(self.port)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C in a terminal is not for the server
        )

    def _wait(self) -> None:
        deadline_s = time.monotonic() + _START_TIMEOUT_S
        while time.monotonic() < deadline_s:
            if (code := self._process.poll()) is not None:
                raise _Ended(_reason(f"ended on port {self.port} with exit code {code}"))
            try:
                with _DIRECT.open(self.url, timeout=1):
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(0.05)
        raise RuntimeError(_reason(f"does not answer on port {self.port}"))

    def _stop(self) -> None:
        self._process.terminate()
        self._process.wait()


class _Ended(RuntimeError):
    """The server is gone before it answered."""


def _reason(what: str) -> str:
    if importlib.util.find_spec("moto") is None:
        return "moto is not installed: pip install 'dataprep-iobench[demo]'"
    return f"moto's S3 server {what}"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
