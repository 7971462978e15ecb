#!/bin/sh
# Dagster 1.13.27 (and 1.13.29): AutomationCondition.eager() and on_cron() forget updates that come at the wrong moment.
#
# An asset downstream of another one is to be made anew after each update of that one. This script evaluates conditions as
# the daemon does, every 30 s, on Dagster's own clock for tests. In all cases the upstream is updated at 0:10, so the
# evaluation of 0:30 requests a run. It prints at which seconds a run is requested when a second update comes:
#
#   between the request and the end of the run:   eager() requests no second run, although the first may have read before
#   after the end, in the same evaluation:        eager() requests no second run either, although the first had ended
#   after an evaluation that has seen the end:    eager() requests a second run
#
# Nothing makes up for it until a third update comes. The condition `each_change` below requests a second run in all cases.
# on_cron() forgets likewise: if a run ends at 1:59:50 and no evaluation comes before the tick of 2:00, an update of 2:20
# requests nothing. The cause is the same: within one evaluation "handled" wins over "updated", whichever came later; the
# times that would tell are lost in the conditions `|` and `&` (https://github.com/dagster-io/dagster/issues/33587).
# Run it with `sh findings/dagster_conditions_forget_updates.sh`. It ends with status 0 as long as that is so, else with 1.
set -eu

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT INT TERM

cat >"$folder/evaluate.py" <<'PYTHON'
import datetime
import warnings

warnings.simplefilter("ignore")
import dagster as dg
from dagster._core.events import AssetMaterializationPlannedData, StepMaterializationData
from dagster._core.test_utils import create_run_for_test, freeze_time

UPSTREAM, DOWNSTREAM = dg.AssetKey("upstream"), dg.AssetKey("downstream")
START = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
condition = dg.AutomationCondition
each_change = (
    condition.any_deps_match(condition.newly_updated()).since(condition.newly_requested())
    & ~condition.any_deps_missing()
    & ~condition.in_progress()
)


def requests(automation_condition, updates, end, evaluations):
    """When runs are requested, in seconds, if the first one ends at `end` and any other one at once."""

    @dg.asset(deps=[UPSTREAM], automation_condition=automation_condition)
    def downstream(): ...

    definitions, cursor, found, run_id = dg.Definitions(assets=[dg.AssetSpec(UPSTREAM), downstream]), None, [], None

    def event(type_, data=None):
        return dg.DagsterEvent(type_, "downstream", event_specific_data=data)

    with dg.DagsterInstance.ephemeral() as instance:

        def begin():
            run = create_run_for_test(instance, job_name="downstream", asset_selection={DOWNSTREAM})
            planned = AssetMaterializationPlannedData(DOWNSTREAM)
            instance.report_dagster_event(event("ASSET_MATERIALIZATION_PLANNED", planned), run.run_id)
            instance.report_dagster_event(event("PIPELINE_START"), run.run_id)
            return run.run_id

        def finish(run_id):
            made = StepMaterializationData(dg.AssetMaterialization(DOWNSTREAM))
            instance.report_dagster_event(event("ASSET_MATERIALIZATION", made), run_id)
            instance.report_dagster_event(event("PIPELINE_SUCCESS"), run_id)

        moments = [(at, "update") for at in updates] + [(at, "evaluate") for at in evaluations] + [(end, "end")]
        for at, what in sorted(moments):
            now = START + datetime.timedelta(seconds=at)
            with freeze_time(now):
                if what == "update":
                    instance.report_runless_asset_event(dg.AssetMaterialization(UPSTREAM))
                elif what == "end":
                    finish(run_id)
                else:
                    result = dg.evaluate_automation_conditions(
                        definitions, instance, evaluation_time=now, cursor=cursor
                    )
                    cursor = result.cursor
                    if result.total_requested:
                        found.append(at)
                        run_id = begin()
                        if len(found) > 1:
                            finish(run_id)
    return found


EVERY_30 = range(0, 211, 30)
for words, update, end in [
    ("just after the request", 50, 95),
    ("just before the end", 70, 75),
    ("just after the end", 75, 70),
    ("long after the end", 95, 70),
]:
    for name, wanted in [("eager", condition.eager()), ("each_change", each_change)]:
        print(f"{words}: {name} {requests(wanted, [10, update], end, EVERY_30)}")
HOURS = [1800, 3610, 4830]
for words, evaluations in [("seen before the tick", [7195, 7210]), ("seen with the tick", [7210])]:
    found = requests(condition.on_cron("0 * * * *"), [4800, 8400], 7190, [*HOURS, *evaluations, 8430, 10770])
    print(f"{words}: on_cron {found}")
PYTHON

python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check "dagster==1.13.27" 2>"$folder/pip" ||
    { cat "$folder/pip" >&2; exit 2; }
"$folder/venv/bin/python" "$folder/evaluate.py" | tee "$folder/seen"

cat >"$folder/described" <<'TEXT'
just after the request: eager [30]
just after the request: each_change [30, 120]
just before the end: eager [30]
just before the end: each_change [30, 90]
just after the end: eager [30]
just after the end: each_change [30, 90]
long after the end: eager [30, 120]
long after the end: each_change [30, 120]
seen before the tick: on_cron [4830, 8430]
seen with the tick: on_cron [4830]
TEXT
cmp "$folder/seen" "$folder/described"
echo "As described: eager() and on_cron() forget updates, and each_change does not."
