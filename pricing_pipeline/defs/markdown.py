"""Markdown for the Dagster UI. No other module makes any.

The UI renders as markdown: metadata of that kind, and the descriptions of assets, columns, checks, jobs, resources,
events and results of checks. It would load pictures from other servers and show links to them, so texts from outside
are escaped there. Texts in metadata, ticks and logs are shown as they are. So are descriptions in the table of assets,
which shows our escapes, too: only characters that could be markdown are escaped.
"""

import re
from urllib.parse import quote

import dagster as dg

_NOTHING = "<!-- -->"
"""Renders as nothing. It splits an address, because the UI links even escaped addresses."""
_SPLIT_AFTER = re.compile(r"(?<=[A-Za-z]):(?=//)|www(?=\.)|@", re.IGNORECASE)
# Not between letters, where it is not markdown and part of the names of data types.
_UNDERSCORE = r"(?<![0-9A-Za-z])_|_(?![0-9A-Za-z])"
_MARK = re.compile(rf"[\\`*\[\]~|]|<(?=[A-Za-z/!?])|&(?=#?\w+;)|{_UNDERSCORE}")
_BLOCK = re.compile(r"^([0-9]{0,9})([-#>+=:.)])")


def escaped(text: str) -> str:
    """Markdown that shows a text as it is, line by line, without links, pictures or other markup."""
    lines = re.split(r"\r\n|\r|\n", text.strip())
    return "\\\n".join(_escaped_line(line.strip(" \t")) for line in lines)


def _escaped_line(line: str) -> str:
    marked = _BLOCK.sub(r"\1\\\2", _MARK.sub(r"\\\g<0>", line))
    return _SPLIT_AFTER.sub(rf"\g<0>{_NOTHING}", marked)


def with_picture(words: str, svg: str) -> dg.MarkdownMetadataValue:
    """A text with a picture below it. The markdown contains the picture, so the browser loads nothing."""
    # No remaining character can end the address.
    picture = quote(svg, safe="/:,='")
    return dg.MetadataValue.md(f"{escaped(words)}\n\n![the plot](data:image/svg+xml,{picture})")


def section(title: str, place: str, body: str) -> dg.MarkdownMetadataValue:
    """A section of one of our pages, as markdown."""
    return dg.MetadataValue.md(f"**{title}** ({place})\n\n{body}")
