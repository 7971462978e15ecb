"""Whether a secret is told: secrets that look like anything, all that work says, receivers that repeat it all."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from pricing_pipeline.errors import OperationFailed
from pricing_pipeline_tests.support.examples import examples
from pricing_pipeline_tests.support.receivers import Post

SECRETS = st.text(st.sampled_from("ABCxyz019-_~!$ %/?#[]@:;&=+'\"\\é"), min_size=8, max_size=24).map(
    lambda text: f"5ecret{text}"
)
FEW = settings(max_examples=examples(12), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


class _Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.NOTSET)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if not record.name.startswith("mail"):  # the mail server of the tests
            self.texts.append(f"{record.name} {record.getMessage()}")


def told(work: Callable[[], Any]) -> str:
    """All that work says: its result, its error with everything behind it, and every log of every library."""
    kept = _Kept()
    root = logging.getLogger()
    level = root.level
    root.addHandler(kept)
    root.setLevel(logging.DEBUG)
    said = ""
    try:
        said = repr(work())
    except OperationFailed as error:
        said = repr(error) + repr(error.__context__) + "".join(traceback.format_exception(error))
    finally:
        root.removeHandler(kept)
        root.setLevel(level)
    return said + "\n".join(kept.texts)


def is_in(secret: str, text: str) -> bool:
    return any(form in text for form in (secret, quote(secret), quote(secret, safe=""), secret[:10]))


def echo(post: Post) -> None:
    """An answer that repeats all that it was sent, in its status line, too."""
    said = f"{post.path} {post.headers}".replace("\r", "").replace("\n", " ")
    post.wfile.write(f"HTTP/1.1 400 {said}\r\nX-Said: {said}\r\nContent-Length: 0\r\n\r\n".encode())


def garbage(post: Post) -> None:
    post.wfile.write(f"{post.path} {post.headers}".encode())
