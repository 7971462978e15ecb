"""Text that chat services show as it is.

Messages repeat the words of providers and users. In them a chat service could find a mention, which alarms a whole
channel (`@everyone`, `<!channel>`, `<users/all>`), or markup that hides where a link leads (`[bank](https://...)`,
`<https://...|bank>`). An address in the text remains a link, which shows where it leads.
"""

from __future__ import annotations

import re

_BREAK = "\u200b"
"""A space without width: nobody sees it, and it ends what a service would otherwise read as one piece."""
_MARKUP = re.compile(r"[@<]|\](?=[(\[:])")
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Control characters, and those that turn the direction of writing, which could show another address than the real."""


def literal(text: str) -> str:
    """The text without mentions and without markup of links, in any chat service."""
    return _MARKUP.sub(lambda found: found[0] + _BREAK, _CONTROLS.sub("", text))
