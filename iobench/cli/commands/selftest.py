"""``iobench selftest``: whether iobench measures known rates and delays correctly."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from iobench.cli.commands.options import Json


def selftest(
    rounds: Annotated[
        int,
        typer.Option(
            min=2, max=100, help="Number of rounds of delays. Use more on a busy machine."
        ),
    ] = 3,
    as_json: Json = False,
) -> None:
    """Check that iobench measures known rates and delays correctly; about five minutes.

    Rates behind a link of known bandwidth must be right. Delays that are injected into fetch,
    decode, augmentation and copy must be found on their rungs of the ladder and named by a finding.
    Otherwise the exit code is 1.
    """
    from iobench.selftest import run

    ok = run(rounds, as_json=as_json, say=typer.echo, note=partial(typer.echo, err=True))
    raise typer.Exit(int(not ok))
