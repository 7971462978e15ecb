"""An S3-compatible server over HTTP, which keeps objects in memory and fails as a test says."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

from pricing_pipeline_tests.support.patience import PATIENCE

OPTIONS = "region=us-east-1&scheme=http&endpoint_override="


@dataclass(frozen=True)
class Request:
    """What is asked of an object. `kind` is GET, HEAD, PUT, COPY, DELETE, LIST, BEGIN, PART or COMPLETE."""

    kind: str
    key: str


@dataclass
class Bucket:
    """The objects, and how the next requests fail."""

    objects: dict[str, tuple[bytes, float]] = field(default_factory=dict)
    """Bytes and the time of the last change, by key."""
    deleted: set[str] = field(default_factory=set)
    """Keys of objects that were there."""
    uploads: dict[str, dict[int, bytes]] = field(default_factory=dict)
    """The parts of each object that is sent in parts."""
    fault: Callable[[Request], str | None] = lambda _: None
    """How a request fails; None if it does not.

    - busy: 503 SlowDown, and nothing is done.
    - stalled: the answer waits until `go_on` is set.
    - unheard: it is done, and answered with 500.
    - ignored: nothing is done, and it is answered as done.
    - half: half of the bytes are stored, and it is answered as done.
    - late error: nothing is done; the status is 200, and the body is an error, as S3 answers COPY and COMPLETE.
    - cut: the connection is closed in the middle of the body.
    - short: half of the body is sent, as if it were all.
    - flipped: one byte of the body is another one.
    - old: a list has what was deleted.
    """
    go_on: threading.Event = field(default_factory=threading.Event)
    flipped_at: float = 0.5
    """Where that byte is: 0.5 is in the middle."""
    age: float = 3600
    """How many seconds ago an object seems to have changed when it changes."""

    def put(self, key: str, body: bytes) -> None:
        self.objects[key] = body, time.time() - self.age

    def delete(self, key: str) -> None:
        self.objects.pop(key, None)
        self.deleted.add(key)


@contextmanager
def serving(bucket: Bucket) -> Iterator[str]:
    """Serve on a free port of 127.0.0.1 until the end of the block; the address is for the URL of a store."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self.look("HEAD")

        def do_GET(self) -> None:
            query = self.query()
            if "list-type" in query:
                self.list_keys(f"{self.key().rstrip('/')}/", query.get("prefix", [""])[0])
            else:
                self.look("GET")

        def do_PUT(self) -> None:
            body, query, key = self.body(), self.query(), self.key()
            if source := self.headers.get("x-amz-copy-source"):
                there = bucket.objects.get(unquote(source).lstrip("/"))
                if there is None:
                    self.refuse(404, "NoSuchKey")
                else:
                    answer = f"<CopyObjectResult><ETag>{_tag(there[0])}</ETag></CopyObjectResult>"
                    self.change("COPY", there[0], lambda kept: bucket.put(key, kept), answer)
            elif "partNumber" in query:
                parts, number = bucket.uploads[query["uploadId"][0]], int(query["partNumber"][0])
                self.change("PART", body, lambda kept: parts.update({number: kept}))
            else:
                self.change("PUT", body, lambda kept: bucket.put(key, kept))

        def do_POST(self) -> None:
            self.body()
            query, key = self.query(), self.key()
            if "uploads" in query:
                upload = str(len(bucket.uploads))
                answer = f"<InitiateMultipartUploadResult><UploadId>{upload}</UploadId></InitiateMultipartUploadResult>"
                self.change("BEGIN", b"", lambda _: bucket.uploads.update({upload: {}}), answer)
            else:
                parts = bucket.uploads[query["uploadId"][0]]
                body = b"".join(parts[number] for number in sorted(parts))
                answer = f"<CompleteMultipartUploadResult><ETag>{_tag(body)}</ETag></CompleteMultipartUploadResult>"
                self.change("COMPLETE", body, lambda kept: bucket.put(key, kept), answer)

        def do_DELETE(self) -> None:
            key = self.key()
            self.change("DELETE", b"", lambda _: bucket.delete(key))

        def change(self, kind: str, body: bytes, keep: Callable[[bytes], None], answer: str = "") -> None:
            """Keep the bytes of a request and answer it, as well as its fault lets that happen."""
            fault = self.fault(kind)
            if fault in ("busy", "late error"):
                self.refuse(503 if fault == "busy" else 200, "SlowDown" if fault == "busy" else "InternalError")
                return
            if fault != "ignored":
                keep(body[: len(body) // 2] if fault == "half" else body)
            if fault == "unheard":
                self.refuse(500, "InternalError")
            else:
                self.say(200, answer.encode(), {"ETag": _tag(body)})

        def look(self, kind: str) -> None:
            fault, there = self.fault(kind), bucket.objects.get(self.key())
            if fault == "busy" or there is None:
                self.refuse(503 if fault == "busy" else 404, "SlowDown" if fault == "busy" else "NoSuchKey")
                return
            body, changed = there
            wanted = self.headers.get("Range", "bytes=0-").removeprefix("bytes=").partition("-")
            since, until = int(wanted[0]), min(int(wanted[2] or len(body)), len(body) - 1)
            fields = {
                "Last-Modified": formatdate(changed, usegmt=True),
                "Content-Range": f"bytes {since}-{until}/{len(body)}",
            }
            body = body[since : until + 1]
            half, at = len(body) // 2, int(len(body) * bucket.flipped_at)
            if fault == "flipped":
                body = body[:at] + bytes([body[at] ^ 255]) + body[at + 1 :]
            elif fault == "short":
                body = body[:half]
            self.say(206 if "Range" in self.headers else 200, body, fields, half if fault == "cut" else None)

        def list_keys(self, home: str, prefix: str) -> None:
            keys = set(bucket.objects) | (bucket.deleted if self.fault("LIST") == "old" else set())
            found = sorted(key for key in keys if key.startswith(home + prefix))
            rows = "".join(
                f"<Contents><Key>{escape(key.removeprefix(home))}</Key><Size>1</Size>"
                "<LastModified>2020-01-01T00:00:00.000Z</LastModified></Contents>"
                for key in found
            )
            head = f"<KeyCount>{len(found)}</KeyCount><IsTruncated>false</IsTruncated>"
            self.say(200, f"<ListBucketResult>{head}{rows}</ListBucketResult>".encode(), {})

        def fault(self, kind: str) -> str | None:
            """How this request fails."""
            fault = bucket.fault(Request(kind, self.key()))
            if fault == "stalled":
                bucket.go_on.wait(PATIENCE)
            return fault

        def key(self) -> str:
            return unquote(urlsplit(self.path).path).lstrip("/")

        def query(self) -> dict[str, list[str]]:
            return parse_qs(urlsplit(self.path).query, keep_blank_values=True)

        def body(self) -> bytes:
            chunks = b"".join(iter(self.chunk, b"")) if "Transfer-Encoding" in self.headers else b""
            raw = chunks + self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if "aws-chunked" not in self.headers.get("Content-Encoding", ""):
                return raw
            found, at = [], 0
            while size := int(raw[at : (end := raw.index(b"\r\n", at))].split(b";")[0], 16):
                found.append(raw[end + 2 : end + 2 + size])
                at = end + size + 4
            return b"".join(found)

        def chunk(self) -> bytes:
            """The next chunk of a body; the last one is empty."""
            chunk = self.rfile.read(int(self.rfile.readline(), 16))
            self.rfile.readline()
            return chunk

        def refuse(self, code: int, why: str) -> None:
            self.say(code, f"<Error><Code>{why}</Code><Message>{why}</Message></Error>".encode(), {})

        def say(self, code: int, body: bytes, fields: dict[str, str], until: int | None = None) -> None:
            """Send an answer, or its body only up to some byte."""
            self.send_response(code)
            for name, value in ({"Content-Length": str(len(body))} | fields).items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body[:until])
            self.close_connection = self.close_connection or until is not None

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            pass

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        bucket.go_on.set()
        server.shutdown()
        server.server_close()
        thread.join()


def _tag(body: bytes) -> str:
    return f'"{hashlib.md5(body).hexdigest()}"'
