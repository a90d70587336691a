"""Reading of Markdown documents."""

import re


def without_code(markdown: str) -> str:
    """A document with its code blocks, the table that `make faults` writes, and quoted sentences blank."""
    markdown = markdown.split("<!-- table -->", maxsplit=1)[0]
    blank = r"^```.*?^```$|^<!-- quoted -->.*?^<!-- end of quote -->$"
    return re.sub(blank, lambda block: "\n" * block[0].count("\n"), markdown, flags=re.S | re.M)
