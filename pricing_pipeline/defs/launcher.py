"""The run launcher of dagster.yaml: Dagster's own, which starts no second process of a run that is at work.

The answer of a code server may come too late, as on a busy machine: the run works, and Dagster's queue launches it once
more. The second process finds the run at work and ends; the code server takes that for the end of the run, and marks it
as failed.
"""

import time

import dagster as dg

from pricing_pipeline.defs.internals import (
    CanCancelExecutionRequest,
    CanCancelExecutionResult,
    DagsterUserCodeUnreachableError,
    GrpcServerCodeLocation,
    LaunchRunContext,
)

_PATIENCE_SECONDS = 10.0
"""How long after a missing answer a code server may begin the run, or say that it has."""
_ASKED_EVERY_SECONDS = 1.0
_ANSWER_SECONDS = 5


class PricingRunLauncher(dg.DefaultRunLauncher):
    """Launches each run once."""

    def launch_run(self, context: LaunchRunContext) -> None:
        run = context.dagster_run
        if self._is_at_work(context):
            return
        try:
            super().launch_run(context)
        except DagsterUserCodeUnreachableError as error:
            if _is_away(error) or not self._begins(context):
                raise
            self._instance.report_engine_event(f"The code server began this run, and its answer was lost: {error}", run)

    def _begins(self, context: LaunchRunContext) -> bool:
        """Whether a launch that was not answered has begun the run, as soon as that is known."""
        until = time.monotonic() + _PATIENCE_SECONDS
        while not (begun := self._is_at_work(context)) and time.monotonic() < until:
            time.sleep(_ASKED_EVERY_SECONDS)
        return begun

    def _is_at_work(self, context: LaunchRunContext) -> bool:
        """Whether a run has begun, or its process begins. A run that waits in the queue meanwhile works again."""
        run = context.dagster_run
        started = self._instance.get_records_for_run(run.run_id, of_type=dg.DagsterEventType.RUN_START, limit=1).records
        if not started:
            return _has_process(context)
        stored = self._instance.get_run_by_id(run.run_id)
        if stored is not None and stored.status is dg.DagsterRunStatus.STARTING:
            # The queue has said so since, and what starts for two minutes counts as lost.
            again = dg.DagsterEvent(dg.DagsterEventType.RUN_START.value, run.job_name)
            self._instance.report_dagster_event(again, run.run_id)
        return True


def _is_away(error: DagsterUserCodeUnreachableError) -> bool:
    """Whether the code server could not be asked at all. Then the queue waits for it."""
    code = getattr(error.__cause__, "code", None)
    return code is not None and code().name == "UNAVAILABLE"


def _has_process(context: LaunchRunContext) -> bool:
    """Whether the code server says that a process of the run lives. One that does not answer says nothing."""
    origin = context.dagster_run.remote_job_origin
    if origin is None or context.workspace is None:
        return False
    location = context.workspace.get_code_location(origin.location_name)
    if not isinstance(location, GrpcServerCodeLocation):
        return False
    try:
        asked = CanCancelExecutionRequest(run_id=context.dagster_run.run_id)
        answer = location.client.can_cancel_execution(asked, _ANSWER_SECONDS)
    except DagsterUserCodeUnreachableError:
        return False
    return dg.deserialize_value(answer, CanCancelExecutionResult).can_cancel
