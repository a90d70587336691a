"""Print the sentences of `check` and `plan`."""

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from cli.layout import make_console, print_line
from cli.pipeline.check_pipeline import HINT


def print_sentences(sentences: Sequence[str], console: Console | None = None) -> None:
    """Print each sentence in lines of its own. A hint wraps next to its label."""
    console = console or make_console()
    for sentence in sentences:
        is_hint = sentence.startswith(HINT)
        print_line(console, Text(HINT if is_hint else ""), sentence.removeprefix(HINT))
