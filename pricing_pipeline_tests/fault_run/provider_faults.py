"""Faults of providers: what the sandbox is told to do to some calls, and the sandbox itself."""

from __future__ import annotations

import time
from typing import Any

from pricing_pipeline_tests.fault_run.kinds import Scene, kind
from pricing_pipeline_tests.fault_run.stage import stopped
from pricing_pipeline_tests.fixtures.core import DAILY, QUOTE
from pricing_pipeline_tests.support.receivers import Posted, receiving

_HIT_SECONDS = 4.0
_LONG = "1000000000"
_CALLS = 4
"""Calls that suffer a fault: too few to open a breaker, which would rightly stop all work."""


def _behaves(name: str, words: str, of: str = QUOTE, **behaviour: Any) -> None:
    @kind(name, words, weight=3)
    def act(scene: Scene) -> None:
        _misbehave(scene, behaviour, of)


def _misbehave(scene: Scene, behaviour: dict[str, Any], of: str = QUOTE, most: int = _CALLS) -> None:
    """Let some calls suffer a fault, and make sure that there are calls."""
    chosen = {name: scene.dice.choice(value) if isinstance(value, list) else value for name, value in behaviour.items()}
    path = {QUOTE: "quote", DAILY: "time_series"}[of]
    seconds, count = scene.dice.uniform(0.4, 1.2), scene.dice.randint(1, most)
    scene.stage.sandbox.behave(**chosen, provider="twelvedata", path=path, count=count)
    scene.load.work_for(of, 4)
    time.sleep(seconds)
    ends = time.monotonic() + _HIT_SECONDS
    while not (is_hit := scene.stage.has_misbehaved()) and time.monotonic() < ends:
        time.sleep(0.1)
    scene.happened = is_hit


_behaves("provider_hangs", "the provider does not answer", kind="hang")
_behaves("provider_slow", "the provider answers seconds later", kind="delay", seconds=[0.5, 1.5, 2.5])
_behaves("provider_drips", "an answer comes byte by byte", kind="drip", seconds=[0.05, 1.0])
_behaves("answer_truncated", "half of an answer is missing, under a length that fits", kind="truncate")
_behaves("answer_cut", "an answer ends before its announced length", kind="cut")
_behaves("answer_gzip_bomb", "an answer of some kB unpacks to many MB", kind="bomb", factor=[20, 200])
_behaves("answer_is_a_page", "an answer is a web page with status 200", kind="html")
_behaves("answer_too_long", "an answer is far longer than predicted", kind="status", status=200, body="x" * 400_000)
_behaves("provider_fails", "the provider answers 500, 502, 503 or 504", kind="status", status=[500, 502, 503, 504])
_behaves(
    "price_no_number",
    "a price is NaN, infinite, or no number",
    kind="price",
    value=["NaN", "Infinity", "-", ""],
)
_behaves(
    "price_absurd",
    "a price is negative, zero, or has 308 digits",
    kind="price",
    value=["-1.0", "0", "1e308", "1e400"],
)
_behaves("price_times_100", "a price is a hundred times too high", kind="times", factor=100)
_behaves("answer_of_another_symbol", "an answer is about another symbol", kind="other_symbol", answer="ZM")
_behaves("answer_stale", "the stamps of an answer are hours or days old", kind="stale", seconds=[7200, 864_000])
_behaves(
    "answer_of_the_future",
    "the stamps of an answer are hours or days ahead",
    kind="ahead",
    seconds=[7200, 864_000],
)
_behaves("currency_wrong", "the currency of an answer is another", kind="currency", value=["GBp", "XXX"])
_behaves("high_below_low", "high and low of a bar change places", of=DAILY, kind="crossed")
_behaves("day_twice", "a day comes twice, with different prices", of=DAILY, kind="duplicate")
_behaves("split_missing", "the older half of the bars is on another level", of=DAILY, kind="split", factor=4)


@kind("redirect_to_private_address", "the provider redirects to an address of this machine")
def _redirect(scene: Scene) -> None:
    seen: list[Posted] = []
    with receiving(lambda post: seen.append(Posted(post.path, {}, b"")) or post.answer(200)) as trap:  # type: ignore[func-returns-value]
        _misbehave(scene, {"kind": "redirect", "location": trap.url})
        if trap.posted:
            scene.notes.append(f"{len(trap.posted)} calls went to a private address")


@kind("throttle_storm", "the provider refuses for speed, with odd values of Retry-After", weight=3)
def _throttled(scene: Scene) -> None:
    retry_after = scene.dice.choice(["1", "2", "0", "-5", "1.5", "soon", _LONG, _http_date()])
    scene.stage.sandbox.behave("throttle", provider="twelvedata", retry_after=retry_after)
    scene.load.work_for(QUOTE, 4)
    time.sleep(1.5)  # until all who were on their way have come
    scene.happened = scene.stage.has_misbehaved()
    before = scene.stage.count_calls("twelvedata")
    time.sleep(scene.dice.uniform(0.3, 1.0))
    after = scene.stage.count_calls("twelvedata")
    if scene.happened and retry_after == _LONG and after > before:
        scene.notes.append(f"{after - before} calls were made although the provider had asked for a pause")


@kind("key_refused", "the provider refuses the key")
def _refused(scene: Scene) -> None:
    _misbehave(
        scene,
        {
            "kind": "status",
            "status": 401,
            "body": '{"code":401,"message":"apikey is wrong","status":"error"}',
        },
        most=2,
    )


def _http_date() -> str:
    return time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + 3))


@kind("provider_frozen", "the provider's process stands still", weight=4)
def _frozen(scene: Scene) -> None:
    with stopped(scene.stage.provider.pid):
        time.sleep(scene.dice.uniform(0.4, 1.6))


@kind("provider_killed", "the provider is killed, refuses connections, and comes back", weight=3)
def _killed(scene: Scene) -> None:
    scene.stage.note_calls()
    scene.stage.provider.kill()
    time.sleep(scene.dice.uniform(0.2, 1))
