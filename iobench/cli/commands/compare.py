"""``iobench compare``: whether a newer run is better or worse than a base run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from iobench.cli.commands.options import Json


def compare(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN_DIR",
            help="The base run, then newer runs: folders, or their result.json. "
            "With --against, only the newer runs.",
        ),
    ],
    threshold: Annotated[
        str,
        typer.Option(
            metavar="SHARE", help="Smallest change of a rate that counts as better or worse."
        ),
    ] = "5%",
    against: Annotated[
        Path | None,
        typer.Option(metavar="BASELINE", help="The base run: a folder, or a saved result.json."),
    ] = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Compare even if images, models, machines or the rules of counting differ.",
        ),
    ] = False,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write the comparison as an HTML page.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Compare saved runs: did a change help?

    Training loops are paired by their group, other trials by their settings. The rates of the loops
    decide. If no loop is in both runs, the rates of loaders and probes decide. The exit code is 1
    for a regression and 2 if the runs cannot be compared. With several newer runs, the newest one
    decides.
    """
    from iobench.cli.comparison_output import compare_saved, require_page_name, threshold_share
    from iobench.results.result import errors_naming

    if html is not None:
        require_page_name(html)
    share = threshold_share(threshold)
    folders = [*runs] if against is None else [against, *runs]
    with errors_naming(*folders):
        compared = compare_saved(runs, against, share, force=force)
        if html is not None:
            compared.write_page(html)
        answer = compared.json if as_json else compared.text
    typer.echo(answer)
    raise typer.Exit(compared.exit_code)
