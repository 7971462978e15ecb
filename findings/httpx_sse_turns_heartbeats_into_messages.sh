#!/bin/sh
# httpx-sse 0.4.3 reports each heartbeat as a message without data, once an event with an id has come.
#
# A server of events sends a comment, such as ": still here", so that a quiet connection is kept. By the specification
# (https://html.spec.whatwg.org/multipage/server-sent-events.html) comments are ignored, and a block without data is
# no event. httpx-sse keeps the id of the last event, as it must, and takes it for content of the next block. Seen
# with httpx 0.28.1 and Python 3.11:
#
#   the server sends                     iter_sse() yields
#   a heartbeat                          nothing
#   a price, with `id: 1`                price, id 1
#   a heartbeat, twice                   message, id 1, data "", twice
#
# So it depends on whether events have ids, and fails only after the first one: `sse.json()` of a heartbeat raises
# JSONDecodeError, and a program that counts messages, or takes one for the newest state, takes an empty one. Skip
# events without data. Reported as https://github.com/florimondmanca/httpx-sse/issues/35; its mend, pull request 46,
# was open when this was written.
# Run it with `sh findings/httpx_sse_turns_heartbeats_into_messages.sh`. It ends with status 0 as long as that is so,
# with 1 when it has changed, and with 2 when the packages cannot be installed.
set -eu

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT INT TERM

cat >"$folder/follow.py" <<'PYTHON'
import httpx
import httpx_sse

HEARTBEAT = ": still here\n\n"


def followed(*blocks):
    """What a client yields of a stream; the transport stands for a server."""
    headers = {"Content-Type": "text/event-stream"}
    transport = httpx.MockTransport(lambda request: httpx.Response(200, headers=headers, text="".join(blocks)))
    with httpx.Client(transport=transport) as client:
        with httpx_sse.connect_sse(client, "GET", "http://prices.example") as source:
            return [(sse.event, sse.id, sse.data) for sse in source.iter_sse()]


def price(number=""):
    return f'{number}event: price\ndata: {{"AAPL": "86.30"}}\n\n'


print("without ids:", *followed(HEARTBEAT, price(), HEARTBEAT, HEARTBEAT))
print("with ids:", *followed(HEARTBEAT, price("id: 1\n"), HEARTBEAT, HEARTBEAT))
PYTHON

python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check "httpx-sse==0.4.3" "httpx==0.28.1" \
    2>"$folder/pip" || { cat "$folder/pip" >&2; exit 2; }
"$folder/venv/bin/python" "$folder/follow.py" | tee "$folder/seen"

cat >"$folder/described" <<'TEXT'
without ids: ('price', '', '{"AAPL": "86.30"}')
with ids: ('price', '1', '{"AAPL": "86.30"}') ('message', '1', '') ('message', '1', '')
TEXT
cmp "$folder/seen" "$folder/described"
echo "As described: heartbeats are messages after the first id."
