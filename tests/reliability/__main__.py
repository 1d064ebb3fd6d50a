"""``python -m tests.reliability`` makes the tables of docs/reliability.md anew."""

from tests.reliability.rows import PAGE, load_all, page_with

PAGE.write_text(page_with(PAGE.read_text(), load_all()))
