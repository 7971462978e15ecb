"""Kill first starts at random moments: `python -m pricing_pipeline_tests.support.first_starts [COUNT] [SEED]`.

Each home is new. Its first start gets SIGINT, SIGTERM or SIGKILL at a moment between its begin and its first price; the
next start of the home must bring that price. What was killed when is printed, with what the logs say of a home that was
ruined. Forty homes take about twenty minutes.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time

from pricing_pipeline_tests.fixtures.stack import new_stack

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)


def undisturbed() -> float:
    """Seconds until a first start has its first price."""
    with new_stack() as stack:
        began = time.monotonic()
        stack.start()
        stack.wait_until_up()
        return time.monotonic() - began


def survives(number: signal.Signals, seconds: float) -> bool:
    """Kill a first start after so many seconds; tell whether the home starts again."""
    with new_stack() as stack:
        process = stack.start()
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(number)
        status = stack.wait_for_end()
        stack.forget_database()
        steps = stack.log.read_text().splitlines()
        again = time.monotonic()
        try:
            stack.start()
            stack.wait_until_up()
        except AssertionError as error:
            print(f"RUINED by {number.name} after {seconds:.2f} s (exit {status}): {error}", flush=True)
            return False
        last = steps[-1] if steps else "nothing was said yet"
        up_after = time.monotonic() - again
        killed = f"{number.name:<7} after {seconds:5.2f} s (exit {status}, {last!r})"
        print(f"{killed}; up again in {up_after:.1f} s", flush=True)
        return True


def main() -> None:
    count, seed = map(int, (sys.argv[1:] + ["40", "1"][len(sys.argv) - 1 :])[:2])
    whole = undisturbed()
    print(f"an undisturbed first start has its first price after {whole:.1f} s; seed {seed}", flush=True)
    chance = random.Random(seed)
    survived = sum(survives(chance.choice(SIGNALS), chance.uniform(0, whole)) for _ in range(count))
    print(f"{survived} of {count} homes started again")
    sys.exit(survived != count)


if __name__ == "__main__":
    main()
