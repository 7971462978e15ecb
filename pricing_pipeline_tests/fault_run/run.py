"""A run: faults one after another, each followed by a probe until everything works again, and by an audit."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import httpx
import psycopg
from sqlalchemy.exc import SQLAlchemyError

from pricing_pipeline.errors import PricingError
from pricing_pipeline_tests.fault_run import client_faults, database_faults, provider_faults, worker_faults
from pricing_pipeline_tests.fault_run.audits import Auditor, Findings
from pricing_pipeline_tests.fault_run.kinds import KINDS, Kind, Scene
from pricing_pipeline_tests.fault_run.ledger import Ledger
from pricing_pipeline_tests.fault_run.load import Load, urgent
from pricing_pipeline_tests.fault_run.stage import Stage
from pricing_pipeline_tests.fixtures.core import QUOTE

__all__ = ["KINDS", "Options", "Outcome", "Row", "draw", "run"]

MODULES = (client_faults, database_faults, provider_faults, worker_faults)
"""The modules that define the kinds of faults. The order of their import decides what a seed draws."""
BACK_SECONDS = 30.0
"""Seconds after the end of a fault within which everything must work again."""
_PATIENCE = 90.0
"""Seconds after which a probe is given up; until then it is measured how long it takes."""
_END_SECONDS = 240.0
_AWAY = (psycopg.Error, SQLAlchemyError, PricingError, httpx.HTTPError)
T = TypeVar("T")


@dataclass(frozen=True)
class Options:
    """What to run: at most so many seconds and faults, of all kinds or some, from a step on."""

    seed: int
    seconds: float
    most: int | None = None
    first: int = 1
    only: Sequence[str] = ()
    keeps_going: bool = False
    streams: int = 3
    reads: int = 2
    """How many streams clients hold open, and how many reads they send a second."""


@dataclass
class Row:
    """The results of all faults of one kind."""

    faults: int = 0
    attempted: int = 0
    acknowledged: int = 0
    lost: int = 0
    doubled: int = 0
    late: int = 0
    over_limit: int = 0
    over_quota: int = 0
    other: int = 0
    slowest_back: float = 0.0

    @property
    def is_clean(self) -> bool:
        wrong = self.lost + self.doubled + self.late + self.over_limit + self.over_quota + self.other
        return not wrong and self.slowest_back <= BACK_SECONDS


@dataclass
class Outcome:
    """Rows by kind of fault, and in words what was wrong, each with the step that shows it."""

    rows: dict[str, Row] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    seconds: float = 0.0
    streams: int = 0
    reads: float = 0.0
    """How many streams were open, and how many reads a second were answered."""
    server: str = ""


def draw(kinds: Sequence[Kind], seed: int, step: int) -> tuple[Kind, random.Random]:
    """The fault of a step, and the dice for its details. Nothing else decides, so that any step can be repeated."""
    dice = random.Random(f"{seed} step {step}")
    (chosen,) = dice.choices(kinds, [kind.weight for kind in kinds])
    return chosen, dice


def run(options: Options, say: Callable[[str], None]) -> Outcome:
    """Run until the time or the faults are used up, or until an audit fails."""
    with Stage() as stage:
        ledger = Ledger()
        load = Load(stage, ledger, options.seed, options.streams, options.reads)
        with load.running():
            return _Run(options, stage, load, say).go()


def _patiently(act: Callable[[], T]) -> T:
    """Do what the server may be too busy with its recovery for."""
    ends = time.monotonic() + _PATIENCE
    while True:
        try:
            return act()
        except _AWAY:
            if time.monotonic() > ends:
                raise
            time.sleep(0.2)


class _Run:
    def __init__(self, options: Options, stage: Stage, load: Load, say: Callable[[str], None]) -> None:
        self._options = options
        self._stage = stage
        self._load = load
        self._ledger = load.ledger
        self._say = say
        self._auditor = Auditor(stage, load.ledger)
        self._outcome = Outcome()
        self._last_back = ""
        chosen = [KINDS[name] for name in options.only or KINDS]
        self._kinds = [kind for kind in chosen if kind.needs(stage)]
        self._outcome.left_out = [kind.name for kind in chosen if not kind.needs(stage)]

    def go(self) -> Outcome:
        self._row("no fault")
        self._wait_until_back(time.monotonic())  # the first start takes longer than a later one
        began = time.monotonic()
        step = self._options.first
        while time.monotonic() - began < self._options.seconds:
            if self._options.most is not None and step - self._options.first >= self._options.most:
                break
            if not self._step(step) and not self._options.keeps_going:
                break
            step += 1
        self._end()
        self._outcome.seconds = time.monotonic() - began
        self._outcome.streams = len(self._load.told)
        self._outcome.reads = self._load.read / self._outcome.seconds
        self._outcome.server = _patiently(lambda: str(self._stage.core.one("SHOW server_version"))).split()[0]
        for name, row in self._outcome.rows.items():
            row.attempted = self._ledger.attempted[name]
            row.acknowledged = self._ledger.acknowledged[name]
        return self._outcome

    def _row(self, name: str) -> Row:
        return self._outcome.rows.setdefault(name, Row())

    def _step(self, step: int) -> bool:
        """Commit one fault, and judge what came of it; whether all is well."""
        kind, dice = draw(self._kinds, self._options.seed, step)
        row = self._row(kind.name)
        self._ledger.kind = kind.name
        scene = Scene(self._stage, self._load, dice)
        began = time.monotonic()
        try:
            kind.act(scene)
        except _AWAY as error:
            scene.notes.append(f"the fault itself failed: {type(error).__name__}: {error}")
        row.faults += scene.happened
        ended = time.monotonic()
        for mend in (self._stage.revive, self._stage.sandbox.behave_well, self._stage.end_pauses):
            _patiently(mend)
        back = self._wait_until_back(ended)
        row.slowest_back = max(row.slowest_back, back)
        findings = _patiently(self._auditor.audit)
        words = findings.words + scene.notes + self._load.faults
        self._load.faults = []
        row.other += len(words) - len(findings.words)
        if back > BACK_SECONDS:
            words.append(f"it took {back:.1f} s until all was at work again, last {self._last_back}")
        self._add(row, findings)
        is_well = not words
        state = "; ".join(words) or ("ok" if scene.happened else "it hit nothing; ok")
        self._say(f"{step} {kind.name} {ended - began:.1f} s, back in {back:.1f} s: {state}")
        if not is_well:
            self._outcome.faults.append(f"seed {self._options.seed}, step {step}, {kind.name}: {'; '.join(words)}")
        return is_well

    @staticmethod
    def _add(row: Row, findings: Findings) -> None:
        for name in ("lost", "doubled", "late", "over_limit", "over_quota"):
            setattr(row, name, getattr(row, name) + getattr(findings, name))

    def _wait_until_back(self, since: float) -> float:
        """How long it takes until new work is done, a message arrives, and the API answers."""

        def connect() -> psycopg.Connection:
            return psycopg.connect(self._stage.worker_url, connect_timeout=5)

        number = time.monotonic_ns()
        key = QUOTE, f"C{number}"[-18:]
        urgent(connect, lambda session: self._load.enqueue(session, [key], priority=100_000), _PATIENCE)
        text = urgent(connect, lambda session: self._load.send(session, is_urgent=True), _PATIENCE)
        waits: dict[str, Callable[[], bool]] = {
            "a price": lambda: self._has_price(connect, key[1]),
            "the API": self._stage.api_answers,
            "a message": lambda: any(str(text).encode() in one.body for one in self._stage.receiver.posted[-200:]),
        }
        while waits and time.monotonic() - since < _PATIENCE:
            self._last_back = " and ".join(waits)
            waits = {what: is_there for what, is_there in waits.items() if not is_there()}
            if waits:
                time.sleep(0.05)
                _patiently(self._stage.revive)
        return time.monotonic() - since

    @staticmethod
    def _has_price(connect: Callable[[], psycopg.Connection], symbol: str) -> bool:
        statement = "SELECT EXISTS (SELECT FROM pricing.latest_prices WHERE symbol = %s)"
        return bool(urgent(connect, lambda session: session.execute(statement, [symbol]).fetchone(), 1)[0])

    def _end(self) -> None:
        """Let all that is under way come to its end, and judge the whole."""
        self._ledger.kind = "no fault"
        self._load.rest()
        time.sleep(1)
        hasten = (
            "UPDATE pricing.api_call_queue_live SET run_after = pricing.clock() WHERE status = 'scheduled'",
            "UPDATE pricing.async_operations_live SET due_at = pricing.clock() WHERE status = 'pending'",
            "UPDATE pricing.async_operations_live SET lease_until = pricing.clock() WHERE status = 'processing'"
            " AND claimed_at < pricing.clock() - interval '20 seconds'",
        )
        ends = time.monotonic() + _END_SECONDS
        while time.monotonic() < ends and _patiently(self._is_at_work):
            for statement in hasten:
                _patiently(lambda statement=statement: self._stage.core.rows(statement))  # type: ignore[misc]
            time.sleep(3)
        findings = _patiently(lambda: self._auditor.audit_end(self._load.told))
        row = self._row("no fault")
        self._add(row, findings)
        if findings.words:
            self._outcome.faults.append(f"seed {self._options.seed}, at the end: {'; '.join(findings.words)}")

    def _is_at_work(self) -> bool:
        left = self._stage.core.one(
            "SELECT (SELECT count(*) FROM pricing.api_call_queue_live)"
            " + (SELECT count(*) FROM pricing.async_operations_live WHERE operation_type = 'webhook')"
        )
        return bool(left)
