"""Texts that mean something in markdown or HTML: pictures and links of others, code, tables, all in their spellings."""

from __future__ import annotations

HOSTILE = (
    "![a picture](http://{host}/p)",
    "![a picture][far]",
    "[a link](http://{host}/l)",
    "[a link here](/runs) and ![a picture here](/favicon.png)",
    "[near], [near][] and [as said][near]",
    "[far]: http://{host}/r",
    "[near]: /runs",
    "[^1] and [^1]: a footnote",
    "<http://{host}/a>",
    "http://{host}/b",
    "HTTPS://{host}/c.",
    "ftp://{host}/f",
    "see www.{host}.example/w, or _www.example.com_ or WWW.example.com",
    "mail a_@example.com, mailto:b@example.com or <c@example.com>",
    "@example.com",
    "http&#58;//{host}/e and &lt;b&gt; &amp; S&P",
    "http\\://{host}/s",
    '<img src="http://{host}/i" onerror="fetch(\'http://{host}/o\')">',
    "<script>fetch('http://{host}/x')</script>",
    "<!-- a comment",
    "--> its end",
    "<!--@http://{host}/m",
    "| a | b |",
    "|---|---|---|",
    ":-",
    "a | b",
    "-|-",
    "`code` and ``more``",
    "```",
    "~~~ text",
    "~gone~ and ~~gone~~",
    "**bold** *leaning* __bold__ _leaning_ snake_case_stays",
    "# a title",
    "===",
    "---",
    "- item",
    "+ item",
    "- [ ] task",
    "1. first",
    "12345) last",
    "> quoted",
    "\\",
    "a\\",
    "a \\* b",
    "9.5 USD",
    "é ¦ 中 \u202e",
)


def hostile_texts(host: str) -> list[str]:
    """Each text, with addresses of this host and port."""
    return [text.replace("{host}", host) for text in HOSTILE]
