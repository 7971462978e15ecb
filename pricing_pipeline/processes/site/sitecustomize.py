"""Python runs this first in each process of `up`, also in those that Dagster starts: its folder is on their PYTHONPATH.

What a process imports stays. To look through it for garbage again and again takes a fifth of the import, and importing
is most of the time that a start takes, and a run.
"""

import gc

gc.set_threshold(10_000)
