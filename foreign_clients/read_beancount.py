"""What beancount reads: `read_beancount.py JOURNAL DAY`, JSON to stdout: its errors, and each price on that day."""

from __future__ import annotations

import json
import sys
from datetime import date

from beancount import loader
from beancount.core.prices import build_price_map, get_price

entries, errors, _ = loader.load_file(sys.argv[1])
prices = build_price_map(entries)
on = date.fromisoformat(sys.argv[2])
found = {f"{base}/{quote}": str(get_price(prices, (base, quote), on)[1]) for base, quote in prices.forward_pairs}
print(json.dumps({"errors": [error.message for error in errors], "prices": found}))
