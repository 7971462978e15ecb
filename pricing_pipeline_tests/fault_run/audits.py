"""What must hold after each fault, by the records of the clients, the pipeline and the provider."""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pricing_pipeline_tests.fault_run.ledger import Key, Ledger
from pricing_pipeline_tests.fault_run.load import Told
from pricing_pipeline_tests.fault_run.stage import Stage
from pricing_pipeline_tests.fixtures.core import QUOTE
from pricing_pipeline_tests.support.receivers import Posted
from pricing_pipeline_tests.tools.audit import Snapshot, audit

_BEGINS_WITHIN, _LONGEST_JOURNEY = 5.0, 20.0
_FINISHED = ("completed", "failed", "cancelled")


@dataclass
class Findings:
    """How much is wrong, and what, in words."""

    lost: int = 0
    doubled: int = 0
    late: int = 0
    over_limit: int = 0
    over_quota: int = 0
    words: list[str] = field(default_factory=list)

    def note(self, figure: str, count: int, words: str) -> None:
        if count:
            setattr(self, figure, getattr(self, figure) + count)
            self.words.append(f"{count} {figure.replace('_', ' ')}: {words}")


class Auditor:
    """Remembers finished work, so that each audit looks only at what has changed since the last one."""

    def __init__(self, stage: Stage, ledger: Ledger) -> None:
        self._stage = stage
        self._ledger = ledger
        self._finished: set[Key] = set()
        self._calls_judged = 0
        self._claims: dict[tuple[str, tuple[str, ...]], list[tuple[float, float | None]]] = defaultdict(list)
        self._claimed: set[int] = set()
        self._last_claim = 0

    def audit(self) -> Findings:
        """Judge this moment."""
        findings = Findings()
        self._stage.note_calls()
        self._judge_limits(findings)
        with self._ledger.lock:  # before the snapshot, which may know more, and must not know less
            keys = dict(self._ledger.keys)
            taken_back = set(self._ledger.taken_back)
            messages = dict(self._ledger.messages)
        engine = self._stage.core.owner.execution_options(isolation_level="REPEATABLE READ")
        with engine.connect() as connection:
            snapshot = Snapshot(connection)
            self._judge_tasks(findings, snapshot, keys, taken_back)
            self._judge_prices(findings, snapshot)
            self._judge_messages(findings, snapshot, messages)
            self._judge_quota(findings, snapshot)
            try:
                audit(snapshot)
            except AssertionError as error:
                findings.note("doubled", 1, f"the books do not agree: {error}")
        return findings

    def audit_end(self, told: list[Told]) -> Findings:
        """Judge the end, when nothing is under way any more: all that was acknowledged, and the streams."""
        self._finished.clear()
        findings = self.audit()
        live = self._stage.core.one("SELECT count(*) FROM pricing.api_call_queue_live")
        findings.note("lost", live, "tasks are still live, although nothing hinders them")
        received = {body for body, _ in _received(self._stage.receiver.posted)}
        silent = self._stage.core.rows(
            "SELECT id, payload ->> 'body' AS body FROM pricing.async_operations WHERE status = 'completed'"
            " AND operation_type = 'webhook'"
        )
        missing = [row.body for row in silent if row.body not in received]
        findings.note("lost", len(missing), f"messages count as sent, and never came: {missing[:5]}")
        waiting = self._stage.core.one(
            "SELECT count(*) FROM pricing.async_operations_live WHERE operation_type = 'webhook'"
        )
        findings.note("lost", waiting, "messages are still waiting, although nothing hinders them")
        for stream in told:
            self._judge_stream(findings, stream)
        return findings

    # --- tasks and prices -------------------------------------------------------------------------

    def _judge_tasks(self, findings: Findings, snapshot: Snapshot, keys: dict[Key, str], taken_back: set[Key]) -> None:
        open_keys = [key for key in keys if key not in self._finished]
        rows = snapshot.rows(
            "SELECT q.data_type, q.symbol, count(*) AS count, min(q.status) AS status"
            " FROM unnest(CAST(:types AS text[]), CAST(:symbols AS text[])) AS w (data_type, symbol)"
            " JOIN pricing.api_call_queue q USING (data_type, symbol) GROUP BY 1, 2",
            types=[data_type for data_type, _ in open_keys],
            symbols=[symbol for _, symbol in open_keys],
        )
        seen = {(row.data_type, row.symbol): row for row in rows}
        lost = [key for key in open_keys if key not in seen]
        findings.note("lost", len(lost), f"acknowledged tasks are in no state: {lost[:5]}")
        twice = [key for key, row in seen.items() if row.count > 1 and key not in self._ledger.shared]
        findings.note("doubled", len(twice), f"one task became several: {twice[:5]}")
        done = [key for key, row in seen.items() if row.status in _FINISHED]
        unexpected = snapshot.rows(
            "SELECT data_type, symbol FROM unnest(CAST(:types AS text[]), CAST(:symbols AS text[]))"
            " AS w (data_type, symbol) JOIN pricing.api_call_queue q USING (data_type, symbol)",
            types=[data_type for data_type, _ in taken_back],
            symbols=[symbol for _, symbol in taken_back],
        )
        findings.note("doubled", len(unexpected), f"rolled-back work appeared: {unexpected[:5]}")
        self._judge_quotes(findings, snapshot, [key for key in done if seen[key].status == "completed"])
        self._finished.update(done)

    def _judge_quotes(self, findings: Findings, snapshot: Snapshot, done: list[Key]) -> None:
        """A quote that was asked for once has one price, or one that nobody believed."""
        symbols = self._ledger.quotes(done)
        rows = snapshot.rows(
            "SELECT w.symbol, (SELECT count(*) FROM pricing.price_history h"
            " WHERE (h.data_type, h.symbol) = (:quote, w.symbol)) AS prices,"
            " EXISTS (SELECT FROM pricing.quarantined_values v"
            " WHERE (v.data_type, v.symbol) = (:quote, w.symbol)) AS is_doubted"
            " FROM unnest(CAST(:symbols AS text[])) AS w (symbol)",
            quote=QUOTE,
            symbols=symbols,
        )
        lost = [row.symbol for row in rows if not row.prices and not row.is_doubted]
        findings.note("lost", len(lost), f"tasks are completed without a price: {lost[:5]}")
        twice = [row.symbol for row in rows if row.prices > 1]
        findings.note("doubled", len(twice), f"one task stored several prices: {twice[:5]}")

    def _judge_prices(self, findings: Findings, snapshot: Snapshot) -> None:
        """What a worker stored after its claim was lost."""
        for table in ("price_history", "latest_prices"):
            rows = snapshot.rows(
                f"SELECT p.data_type, p.symbol, c.outcome FROM pricing.{table} p"
                " JOIN pricing.collector_call_log c USING (call_id) WHERE c.outcome <> 'ok'"
            )
            findings.note("late", len(rows), f"{table} has what no successful call brought: {rows[:5]}")

    # --- messages ---------------------------------------------------------------------------------

    def _judge_messages(self, findings: Findings, snapshot: Snapshot, messages: dict[int, str]) -> None:
        there = {
            row.id: str(row.idempotency_key)
            for row in snapshot.rows("SELECT id, idempotency_key FROM pricing.async_operations")
        }
        lost = [operation for operation in messages if operation not in there]
        findings.note("lost", len(lost), f"acknowledged messages are in no state: {lost[:5]}")
        keys: dict[str, set[str]] = defaultdict(set)
        for body, key in _received(self._stage.receiver.posted):
            keys[body].add(key)
        twice = [body for body, found in keys.items() if len(found) > 1]
        findings.note("doubled", len(twice), f"a message came under several keys: {twice[:5]}")
        strange = [
            messages[one] for one in messages if one in there and keys.get(messages[one], {there[one]}) != {there[one]}
        ]
        findings.note("doubled", len(strange), f"a message came under another's key: {strange[:5]}")

    # --- limits and quota -------------------------------------------------------------------------

    def _judge_quota(self, findings: Findings, snapshot: Snapshot) -> None:
        for row in snapshot.rows(
            "SELECT provider, pricing.bytes_used(provider, pricing.clock()) AS used, quota_bytes"
            " FROM pricing.data_collectors"
        ):
            over = max(0, row.used - row.quota_bytes)
            findings.note("over_quota", over, f"bytes of {row.provider}")

    def _judge_limits(self, findings: Findings) -> None:
        """The most units in any window that ends with a call not judged before, by the provider's own log."""
        calls, first = self._stage.calls, self._calls_judged
        self._read_claims()
        for call in calls[first:]:
            if "excess" not in call:
                call["excess"] = self._excess(call)
        while first and calls[first - 1]["monotonic"] > calls[self._calls_judged - 1]["monotonic"] - 60:
            first -= 1
        for provider, units, seconds in self._limits():
            window: deque[dict[str, Any]] = deque()
            worst = 0
            for place, call in enumerate(calls[first:], start=first):
                if call["provider"] != provider:
                    continue
                window.append(call)
                while window[0]["monotonic"] <= call["monotonic"] - seconds:
                    window.popleft()
                if place >= self._calls_judged:
                    allowed = units * (1 + self._clock_steps(call, seconds))
                    worst = max(worst, _units_in(window, seconds) - allowed)
            findings.note("over_limit", max(0, worst), f"units of {provider} in {seconds} s")
        self._calls_judged = len(calls)

    def _read_claims(self) -> None:
        """What the pipeline has claimed since the last time; ids may be committed out of order."""
        for row in self._stage.core.rows(
            "SELECT call_id, provider, symbols, extract(epoch FROM started_at)::float8 AS at,"
            " extract(epoch FROM finished_at - started_at)::float8 AS took"
            " FROM pricing.collector_call_log WHERE call_id > :after ORDER BY call_id",
            after=self._last_claim - 200,
        ):
            if row.call_id not in self._claimed:
                self._claimed.add(row.call_id)
                self._claims[row.provider, tuple(row.symbols)].append((row.at, row.took))
                self._last_claim = max(self._last_claim, row.call_id)

    def _excess(self, call: dict[str, Any]) -> float:
        """By how many seconds a call came later than a worker may send it, so by how much the provider stood still.

        A worker begins a call within five seconds of its claim, or not at all, and it sends nothing after the end.
        """
        claims = self._claims[call["provider"], tuple(call["symbols"])]
        for at, took in claims:
            # The clock may have been moved when it was claimed, by an hour or by three days.
            for step in (0, 3600, -3600, 259_200, -259_200):
                if 0 <= (journey := call["epoch"] - at + step) < _LONGEST_JOURNEY:
                    claims.remove((at, took))
                    latest = _BEGINS_WITHIN if took is None else min(_BEGINS_WITHIN, max(took, 0.0))
                    return max(0.0, float(journey) - latest)
        return 0.0

    def _clock_steps(self, call: dict[str, Any], seconds: int) -> int:
        """How often the database's clock was moved in the window of a call: each step may cost a window more."""
        return sum(0 <= call["monotonic"] - step < seconds + 5 for step in self._stage.clock_steps)

    def _limits(self) -> list[tuple[str, int, int]]:
        rows = self._stage.core.rows(
            "SELECT provider, units, window_seconds FROM pricing.provider_limits WHERE window_seconds <= 60"
        )
        return [(row.provider, row.units, row.window_seconds) for row in rows]

    # --- streams ----------------------------------------------------------------------------------

    def _judge_stream(self, findings: Findings, told: Told) -> None:
        findings.note("doubled", told.doubled, "events of a stream came twice")
        for (data_type, symbol), times in told.prices.items():
            if len(times) < 2:
                continue
            rows = self._stage.core.rows(
                "SELECT observed_at FROM pricing.price_history WHERE data_type = :data_type AND symbol = :symbol"
                " AND observed_at BETWEEN CAST(:first AS timestamptz) AND CAST(:last AS timestamptz)",
                data_type=data_type,
                symbol=symbol,
                first=min(times),
                last=max(times),
            )
            missing = {row.observed_at for row in rows} - {datetime.fromisoformat(time) for time in times}
            findings.note("lost", len(missing), f"a stream was not told prices of {symbol}: {sorted(missing)[:3]}")


def _units_in(window: Iterable[dict[str, Any]], seconds: float) -> int:
    """The units in a window, which is shorter by as long as the provider stood still in it."""
    calls = list(window)
    since = calls[-1]["monotonic"] - seconds + max(call["excess"] for call in calls)
    return sum(call["units"] for call in calls if call["monotonic"] > since)


def _received(posted: list[Posted]) -> list[tuple[str, str]]:
    """Text and idempotency key of each message that came."""
    found = []
    for one in list(posted):
        body = json.loads(one.body)["payload"]["body"]
        found.append((body, one.headers["Idempotency-Key"]))
    return found
