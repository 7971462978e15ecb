"""Markdown for the Dagster UI. Nobody else makes any.

The UI renders as markdown: metadata of that kind, and the descriptions of assets, columns, checks, jobs, resources, of
events and of what a check has found. It would load pictures from others' servers and show links to them, so a text that
is not ours is escaped there. Texts in metadata, ticks and logs are shown as they are. So are descriptions in the table
of assets, which shows our escapes, too: nothing is escaped that could not be markdown.
"""

import re
from urllib.parse import quote

import dagster as dg

_NOTHING = "<!-- -->"
"""Is rendered as nothing. It splits an address: the UI links addresses even when they are escaped."""
_SPLIT_AFTER = re.compile(r"(?<=[A-Za-z]):(?=//)|www(?=\.)|@", re.IGNORECASE)
# Not between letters, where it means nothing and names of data types have it.
_UNDERSCORE = r"(?<![0-9A-Za-z])_|_(?![0-9A-Za-z])"
_MARK = re.compile(rf"[\\`*\[\]~|]|<(?=[A-Za-z/!?])|&(?=#?\w+;)|{_UNDERSCORE}")
_BLOCK = re.compile(r"^([0-9]{0,9})([-#>+=:.)])")


def escaped(text: str) -> str:
    """Markdown that shows a text as it is, line by line, without links, pictures or anything else in it."""
    lines = re.split(r"\r\n|\r|\n", text.strip())
    return "\\\n".join(_escaped_line(line.strip(" \t")) for line in lines)


def _escaped_line(line: str) -> str:
    marked = _BLOCK.sub(r"\1\\\2", _MARK.sub(r"\\\g<0>", line))
    return _SPLIT_AFTER.sub(rf"\g<0>{_NOTHING}", marked)


def with_picture(words: str, svg: str) -> dg.MarkdownMetadataValue:
    """A text, and a picture below it that is part of the markdown: the browser asks nobody for it."""
    # Nothing that is left could end the address.
    picture = quote(svg, safe="/:,='")
    return dg.MetadataValue.md(f"{escaped(words)}\n\n![the plot](data:image/svg+xml,{picture})")


def section(title: str, place: str, body: str) -> dg.MarkdownMetadataValue:
    """A section of a page of ours, whose markdown stays what it is."""
    return dg.MetadataValue.md(f"**{title}** ({place})\n\n{body}")
