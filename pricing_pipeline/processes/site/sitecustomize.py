"""Python runs this first in each process of a pipeline, also in those that Dagster starts: its folder is on their
PYTHONPATH. It closes their memory, which may hold keys of providers and passwords.

What a process imports stays. To look through it for garbage again and again takes a fifth of the import, and importing
is most of the time that a start takes, and a run.
"""

import gc

from pricing_pipeline.processes.closed_memory import close_memory

close_memory()
gc.set_threshold(10_000)
