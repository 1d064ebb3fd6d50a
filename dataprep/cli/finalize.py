"""``dataprep finalize``."""

from __future__ import annotations

from typing import Annotated

import typer

from dataprep.cli.options import EndpointUrl, Json, OneSplit, Output, StoreSettings, store_options


def finalize(
    output: Output,
    split: OneSplit = None,
    parts: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Number of parts, to name those that are missing."),
    ] = None,
    max_failures: Annotated[
        str,
        typer.Option(
            metavar="LIMIT",
            help="Photos of the whole split that may fail: a number, a share, unlimited.",
        ),
    ] = "1%",
    endpoint_url: EndpointUrl = None,
    set_: StoreSettings = None,
    as_json: Json = False,
) -> None:
    """Write the manifest after --part jobs."""
    from dataprep.cli.output import Terminal, show, split_text, splits_json
    from dataprep.config import allowed_failures
    from dataprep.errors import ConfigError, DataprepError, DatasetError, JobError
    from dataprep.job.finish import finalize as run
    from dataprep.reading.splits import splits_in
    from dataprep.stores import open_store

    try:
        allowed_failures(max_failures, 0)
    except ConfigError as error:
        raise ConfigError(f"--max-failures {max_failures}: {error}") from None
    options = store_options(endpoint_url, set_)
    note = Terminal().note
    made = []
    errors: dict[str, DataprepError] = {}
    for name in [split] if split else splits_in(open_store(output, options)):
        try:
            made.append(
                run(
                    output, name, max_failures=max_failures, parts=parts, options=options, note=note
                )
            )
        except (JobError, DatasetError) as error:  # the other splits may be ready
            errors[name] = error
    if as_json:
        show(splits_json(made, incomplete=errors))
    else:
        for summary in made:
            show(split_text(summary))
    if errors:
        failed = DataprepError("\n".join(map(str, errors.values())))
        failed.exit_code = max(error.exit_code for error in errors.values())
        if made:  # 2 would say that nothing was written
            failed.exit_code = 1
        raise failed
