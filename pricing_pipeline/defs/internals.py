"""What we use of Dagster that is not public. No other module imports a name of it that begins with an underscore.

Each group says why there is no public way, and which tests notice a change. pyproject.toml pins Dagster's version;
`make test-newest-dagster` tries the newest one.
"""
# isort: off
# fmt: off

# To know in a sensor which code server loads our definitions, and reload them; to tell runs of our code
# location from those of others, for which the filter of runs has no field, only Dagster's own tag.
# orchestration/test_shared_instance.py, acceptance/test_code_server.py
from dagster._core.remote_origin import (
    GrpcServerCodeLocationOrigin as GrpcServerCodeLocationOrigin,
    RemoteRepositoryOrigin as RemoteRepositoryOrigin,
)
from dagster._core.storage.tags import REPOSITORY_LABEL_TAG as REPOSITORY_LABEL_TAG
from dagster._record import replace as replace

# To tell our backfills from those of others: one of assets names only keys and partitions.
# acceptance/test_dagster_shared_instance.py, orchestration/test_beside.py
from dagster._core.definitions.partitions.schedule_type import ScheduleType as ScheduleType
from dagster._core.definitions.partitions.subset import (
    PartitionsSubset as PartitionsSubset,
    TimeWindowPartitionsSubset as TimeWindowPartitionsSubset,
)
from dagster._core.execution.backfill import PartitionBackfill as PartitionBackfill

# To know which sensors and schedules tick, and why one fails: the instance tells it in types that are not public.
# orchestration/test_failures_noted.py, orchestration/test_watching.py
from dagster._core.remote_representation.external import RemoteSensor as RemoteSensor
from dagster._core.scheduler.instigation import (
    InstigatorState as InstigatorState,
    InstigatorTick as InstigatorTick,
    InstigatorType as InstigatorType,
    SensorInstigatorData as SensorInstigatorData,
    TickStatus as TickStatus,
)
from dagster._utils.error import SerializableErrorInfo as SerializableErrorInfo  # type: ignore[attr-defined]

# To launch no run twice: the public launcher says neither that an answer came late, nor whether a run's process lives.
# acceptance/test_launches.py
from dagster._core.errors import DagsterUserCodeUnreachableError as DagsterUserCodeUnreachableError
from dagster._core.launcher import LaunchRunContext as LaunchRunContext
from dagster._core.remote_representation.code_location import GrpcServerCodeLocation as GrpcServerCodeLocation
from dagster._grpc.types import (
    CanCancelExecutionRequest as CanCancelExecutionRequest,
    CanCancelExecutionResult as CanCancelExecutionResult,
)

# To hand the registry on from the process that loads a location to the workers of its runs: only loaders of Dagster's
# own and components with state can, and a project that calls a function has neither.
# acceptance/test_dagster_embedding.py, orchestration/test_snapshot.py
from dagster._core.definitions.definitions_load_context import (
    DefinitionsLoadContext as DefinitionsLoadContext,
    DefinitionsLoadType as DefinitionsLoadType,
)

# To know the very slots of Dagster's schedules, so that one that was missed is caught up once.
# orchestration/test_missed_slots.py, orchestration/test_schedules.py
from dagster._utils.schedules import (
    cron_string_iterator as cron_string_iterator,
    get_latest_completed_cron_tick as get_latest_completed_cron_tick,
    is_valid_cron_schedule as is_valid_cron_schedule,
)
from dagster._vendored.croniter.croniter import CroniterBadDateError as CroniterBadDateError

# To make Dagster's tables in one transaction, and to remove old events, for which it has no command.
# orchestration/test_storage_alone.py, orchestration/test_pruning.py, faults/test_first_start_killed.py
from dagster._core.instance.ref import InstanceRef as InstanceRef
from dagster._core.instance.utils import RUNLESS_RUN_ID as RUNLESS_RUN_ID
from dagster._core.storage.event_log import SqlEventLogStorageMetadata as SqlEventLogStorageMetadata
from dagster._core.storage.event_log.schema import (
    AssetCheckExecutionsTable as AssetCheckExecutionsTable,
    SqlEventLogStorageTable as SqlEventLogStorageTable,
)
from dagster._core.storage.event_log.sql_event_log import SqlEventLogStorage as SqlEventLogStorage
from dagster._core.storage.runs.schema import RunStorageSqlMetadata as RunStorageSqlMetadata
from dagster._core.storage.schedules.schema import ScheduleStorageSqlMetadata as ScheduleStorageSqlMetadata

# To put our guard before Dagster's webserver, and our limits on its daemon: both are public as programs alone.
# acceptance/test_webserver.py, acceptance/test_stack.py, orchestration/test_beside.py
from dagster._core.workspace.context import WorkspaceProcessContext as WorkspaceProcessContext
from dagster._core.workspace.load_target import WorkspaceFileTarget as WorkspaceFileTarget
from dagster._utils.interrupts import capture_interrupts as capture_interrupts

# To replace globals of Dagster's daemon (daemon.py): pauses that no setting changes, a clock that may be set back.
# orchestration/test_daemon.py
from dagster._daemon import (
    controller as controller,
    daemon as daemon,
    freshness as freshness,
    sensor as sensor,
)

# To fork the server of our definitions, and runs (code_server.py): Dagster itself only starts them as new programs.
# acceptance/test_forked_runs.py, faults/test_violence.py
from dagster._cli import ENV_PREFIX as ENV_PREFIX, cli as cli
from dagster._grpc import server as server
