"""The headline of the page: whether all is well, and a line for each trouble and each point to look at."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from pricing_pipeline.api.page.reading import Reading, is_heard


class State(StrEnum):
    """How the pipeline is. `waits` is well, but for points that a person has to look at."""

    WELL = "well"
    WAITS = "waits"
    ILL = "ill"


@dataclass(frozen=True, slots=True)
class Finding:
    """A trouble, or a point to look at, in a sentence; and the section of the page that has more."""

    state: State
    words: str
    section: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """The headline, and the findings behind it, the gravest first."""

    state: State
    words: str
    findings: Sequence[Finding]


def judge(reading: Reading) -> Verdict:
    """Whether all is well."""
    findings = [finding for look in LOOKS for finding in look(reading)]
    ill = [finding for finding in findings if finding.state is State.ILL]
    waits = [finding for finding in findings if finding.state is State.WAITS]
    if ill:
        gravest = " ".join(f"{finding.words}." for finding in ill[:2])
        return Verdict(State.ILL, f"Not all is well. {gravest}", [*ill, *waits])
    if waits:
        return Verdict(State.WAITS, f"{_served(reading)} {_points(len(waits))}", waits)
    return Verdict(State.WELL, f"All is well. {_served(reading)}", [])


def _served(reading: Reading) -> str:
    watched, fresh, refused = (reading.total(name) for name in ("watched", "fresh", "refused"))
    if not watched:
        return "Nobody watches a price now."
    if watched == fresh:
        return f"All {watched:,} watched prices are fresh." if watched > 1 else "The watched price is fresh."
    refusals = f", {refused:,} {'is' if refused == 1 else 'are'} refused" if refused else ""
    return f"{fresh:,} of {watched:,} watched prices are fresh{refusals}, and none is late."


def _points(count: int) -> str:
    return "One point below needs attention." if count == 1 else f"{count} points below need attention."


def _late(reading: Reading) -> Iterator[Finding]:
    late, watched = reading.total("late"), reading.total("watched")
    if late:
        words = f"{late:,} of {watched:,} watched {'price is' if watched == 1 else 'prices are'} late"
        yield Finding(State.ILL, words, "late")


def _alerts(reading: Reading) -> Iterator[Finding]:
    for is_urgent in (True, False):
        unheard = [alert for alert in reading.alerts if (alert["severity"] < "P2") is is_urgent and not is_heard(alert)]
        if unheard:
            kind = "urgent alert" if is_urgent else "alert"
            verb = "is" if len(unheard) == 1 else "are"
            state = State.ILL if is_urgent else State.WAITS
            first = f"{unheard[0]['rule'].replace('_', ' ')} ({unheard[0]['subject']})"
            such_as = ": " if len(unheard) == 1 else ", such as "
            yield Finding(state, f"{_counted(len(unheard), kind)} {verb} open{such_as}{first}", "alerts")


_SECTIONS = {"freshness": "late", "providers": "providers", "queue": "queue"}
"""The section that shows more about a part of the pipeline."""


def _providers(reading: Reading) -> Iterator[Finding]:
    if reading.no_provider is not None:
        yield Finding(State.WAITS, _capitalized(reading.no_provider), "providers")
    # An alert about a provider says the same with more words.
    in_alerts = {word for alert in reading.alerts for word in str(alert["subject"]).split()}
    for provider in reading.providers:
        if provider.standing.stop and provider.standing.provider not in in_alerts:
            yield Finding(State.WAITS, provider.standing.stop, "providers")


def _parts(reading: Reading) -> Iterator[Finding]:
    for part in reading.late_parts:
        yield Finding(State.ILL, _capitalized(part.says or part.part), _SECTIONS.get(part.part, "alerts"))


def _values(reading: Reading) -> Iterator[Finding]:
    count = reading.quarantined_count
    if count:
        yield Finding(
            State.WAITS,
            f"{_counted(count, 'value')} {'waits' if count == 1 else 'wait'} in quarantine",
            "quarantine",
        )


def _refused(reading: Reading) -> Iterator[Finding]:
    refused, watched = reading.total("refused"), reading.total("watched")
    # Their tasks say more.
    if refused and not reading.dead_tasks:
        words = f"{refused:,} of {watched:,} watched {'price is' if watched == 1 else 'prices are'} refused"
        yield Finding(State.WAITS, words, "watched")


def _tasks(reading: Reading) -> Iterator[Finding]:
    if not reading.dead_tasks:
        return
    count, troubled = reading.dead_tasks[0].total, reading.dead_tasks[0].troubled
    words = f"{_counted(count, 'task')} {'has' if count == 1 else 'have'} failed for good"
    if troubled < count:
        of_symbols = "by its symbol" if count == 1 else f"{count - troubled:,} of them by their symbols"
        words = f"{words}, {of_symbols}"
    yield Finding(State.WAITS, words, "tasks")


def _recipients(reading: Reading) -> Iterator[Finding]:
    count = sum(row.breaker_until is not None for row in reading.failing_recipients)
    if count:
        who = "a recipient that is" if count == 1 else f"{count:,} recipients that are"
        yield Finding(State.WAITS, f"Messages wait for {who} not reached", "operations")


def _operations(reading: Reading) -> Iterator[Finding]:
    count = next((row.total for row in reading.operations if row.status == "failed"), 0)
    if count:
        yield Finding(
            State.WAITS,
            f"{_counted(count, 'side effect')} {'has' if count == 1 else 'have'} failed for good",
            "operations",
        )


LOOKS: tuple[Callable[[Reading], Iterator[Finding]], ...] = (
    _late,
    _alerts,
    _parts,
    _providers,
    _values,
    _refused,
    _tasks,
    _operations,
    _recipients,
)
"""Each looks for one kind of trouble."""


def _capitalized(words: str) -> str:
    return words[:1].upper() + words[1:]


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
