"""Python runs this first in each process of a pipeline, also in those that Dagster starts: its folder is on their
PYTHONPATH. It closes their memory, which may hold keys of providers and passwords.

Imported modules stay. Looking through them for garbage takes a fifth of the import, and importing is most of the time
of a start or a run.
"""

import gc

from pricing_pipeline.processes.closed_memory import close_memory

close_memory()
gc.set_threshold(10_000)
