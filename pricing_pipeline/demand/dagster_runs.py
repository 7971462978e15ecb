"""Dagster's webserver over GraphQL: start a run that backfills, and ask how a run fares.

Dagster itself is never imported here. Its job names and tags are part of its public API; the run's configuration is
read by the assets.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from types import TracebackType
from typing import Any, Self

import httpx

from pricing_pipeline.domain.windows import Window
from pricing_pipeline.errors import DagsterUnreachable, SettingsError
from pricing_pipeline.processes import home
from pricing_pipeline.processes.web_guard import ui_token
from pricing_pipeline.settings import Settings

ALL_ASSETS = "__ASSET_JOB"
"""Dagster's own job that holds every asset."""

ASKED_BY = "pricing/asked-by"
"""A tag of a run: the token of the HTTP API with which somebody asked for it."""

QUESTION_SECONDS = 15.0
"""How long an answer may take. The caller can ask again."""
LAUNCH_SECONDS = 60.0
"""So long a launch may take: one that was given up on might still become a run."""
_CONNECT_SECONDS = 3.0

FIND = """
query Find($asset: AssetKeyInput!) {
  assetNodeOrError(assetKey: $asset) {
    __typename
    ... on AssetNode {
      partitionKeys
      opName
      repository { name location { name } }
    }
  }
}
"""

LAUNCH = """
mutation Launch($params: ExecutionParams!) {
  launchRun(executionParams: $params) {
    __typename
    ... on LaunchRunSuccess { run { runId } }
    ... on PythonError { message }
    ... on UnauthorizedError { message }
    ... on PipelineNotFoundError { message }
    ... on InvalidSubsetError { message }
    ... on RunConfigValidationInvalid { errors { message } }
  }
}
"""

STATUS = """
query Status($run: ID!) {
  runOrError(runId: $run) {
    __typename
    ... on Run { status }
  }
}
"""

FAILURE = """
query Failure($run: ID!) {
  logsForRun(runId: $run) {
    ... on EventConnection {
      events { ... on ExecutionStepFailureEvent { error { message } } }
    }
  }
}
"""


@dataclass(frozen=True, slots=True)
class Location:
    """Where an asset is defined, its partitions in order, and the step that fetches."""

    repository: str
    location: str
    partitions: tuple[str, ...]
    """Keys of months, each its first day."""
    step: str
    """Its configuration says what partitions cannot: some symbols only, and the exact days."""

    @property
    def first_day(self) -> date:
        """The first day that a run can be asked for."""
        return date.fromisoformat(self.partitions[0])


class Webserver:
    """The webserver at `url`, with the token that it may ask for, and the prefix of our assets there.

    Methods that ask it raise DagsterUnreachable when it does not answer, and SettingsError when the token is wrong.
    """

    def __init__(self, url: str, token: str | None = None, asset_prefix: str | None = None) -> None:
        self.url = url.rstrip("/")
        self._prefix = asset_prefix.split("/") if asset_prefix is not None else []
        # It answers on loopback, without a proxy, but may be slow when busy.
        self._http = httpx.Client(
            headers={"Authorization": f"Bearer {token}"} if token is not None else {},
            trust_env=False,
        )

    @classmethod
    def of_home(cls, settings: Settings) -> Self | None:
        """The webserver that the settings name, or that runs in their home; None without either."""
        url = settings.webserver_url or home.urls(settings.home).get("dagster")
        return None if url is None else cls(url, ui_token(settings), settings.asset_prefix)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.close()

    def run_url(self, run_id: str) -> str:
        """Where a person can look at a run."""
        return f"{self.url}/runs/{run_id}"

    def find(self, data_type: str) -> Location | None:
        """Where `price_history/<data_type>` is defined; None when it is not (yet)."""
        node = self._ask(FIND, {"asset": self._asset(data_type)}, QUESTION_SECONDS)["assetNodeOrError"]
        if node["__typename"] != "AssetNode" or not node["partitionKeys"]:
            return None
        repository = node["repository"]
        return Location(
            repository["name"],
            repository["location"]["name"],
            tuple(node["partitionKeys"]),
            node["opName"],
        )

    def launch(
        self,
        where: Location,
        data_type: str,
        window: Window,
        symbols: list[str] | None = None,
        asked_by: str | None = None,
    ) -> str:
        """Start one run over the months that `window` touches, none before the first partition; returns its id.

        `asked_by` becomes a tag of the run. Raises DagsterUnreachable when Dagster refuses.
        """
        config = {"from_day": str(window.start), "to_day": str(window.end), "symbols": symbols or []}
        selector = {
            "repositoryName": where.repository,
            "repositoryLocationName": where.location,
            "jobName": ALL_ASSETS,
            "assetSelection": [self._asset(data_type)],
        }
        tags = _month_tags(where, window) | ({} if asked_by is None else {ASKED_BY: asked_by})
        metadata = {"tags": [{"key": key, "value": value} for key, value in tags.items()]}
        run_config = {"ops": {where.step: {"config": config}}}
        params = {"selector": selector, "executionMetadata": metadata, "runConfigData": run_config}
        answer = self._ask(LAUNCH, {"params": params}, LAUNCH_SECONDS)["launchRun"]
        if answer["__typename"] != "LaunchRunSuccess":
            message = answer.get("message") or "; ".join(e["message"] for e in answer.get("errors", ()))
            raise DagsterUnreachable(
                f"Dagster refuses to start the backfill ({answer['__typename']}): {_first_line(message)} "
                f"Its UI at {self.url} shows whether the code location is healthy."
            )
        run_id: str = answer["run"]["runId"]
        return run_id

    def status(self, run_id: str) -> str | None:
        """Dagster's status of a run, such as QUEUED, STARTED or SUCCESS; None when there is no such run."""
        answer = self._ask(STATUS, {"run": run_id}, QUESTION_SECONDS)["runOrError"]
        status: str | None = answer.get("status")
        return status

    def failure(self, run_id: str) -> str | None:
        """The error of the first failed step of a run; None when no step failed."""
        events = self._ask(FAILURE, {"run": run_id}, QUESTION_SECONDS)["logsForRun"].get("events") or ()
        message = next((event["error"]["message"] for event in events if event.get("error")), None)
        # Dagster puts the name of the exception's class before its words.
        return None if message is None else re.sub(r"^[\w.]+: ", "", _first_line(message))

    def history(self, data_type: str) -> str:
        """The asset of a history, in words."""
        return "/".join(self._asset(data_type)["path"])

    def _asset(self, data_type: str) -> dict[str, list[str]]:
        return {"path": [*self._prefix, "price_history", data_type]}

    def _ask(self, query: str, variables: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        try:
            response = self._http.post(
                f"{self.url}/graphql",
                json={"query": query, "variables": variables},
                timeout=httpx.Timeout(seconds, connect=_CONNECT_SECONDS),
            )
            if response.status_code == httpx.codes.UNAUTHORIZED:
                raise SettingsError(
                    f"the Dagster UI at {self.url} expects another token than the one that is set here. Set "
                    "PRICING_UI_TOKEN to the one with which the pipeline was started."
                )
            content = response.json()
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            raise DagsterUnreachable(
                f"Dagster at {self.url} does not answer: {error or type(error).__name__}."
            ) from error
        if not isinstance(content, dict) or not isinstance(content.get("data"), dict):
            errors = content.get("errors") if isinstance(content, dict) else content
            raise DagsterUnreachable(f"Dagster at {self.url} does not answer as expected: {errors}.")
        data: dict[str, Any] = content["data"]
        return data


def _month_tags(where: Location, window: Window) -> dict[str, str]:
    """The range of partitions. The last may be a month short of ours for a moment, when a new month begins."""

    def month(day: date) -> str:
        return min(day.strftime("%Y-%m-01"), where.partitions[-1])

    return {
        "dagster/asset_partition_range_start": month(window.start),
        "dagster/asset_partition_range_end": month(window.end),
    }


def _first_line(message: str) -> str:
    return (message.strip().splitlines() or ["it gives no reason."])[0]
