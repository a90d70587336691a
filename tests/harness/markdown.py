"""Parse Markdown documents."""

import re


def without_code(markdown: str) -> str:
    """Return a document with its code blocks, the table of `make faults`, and quoted sentences blanked out."""
    markdown = markdown.split("<!-- table -->", maxsplit=1)[0]
    blank = r"^```.*?^```$|^<!-- quoted -->.*?^<!-- end of quote -->$"
    return re.sub(blank, lambda block: "\n" * block[0].count("\n"), markdown, flags=re.S | re.M)
