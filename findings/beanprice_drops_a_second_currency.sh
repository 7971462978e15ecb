#!/bin/sh
# beanprice 2.1.0 drops a new price if the ledger has one of that day in another currency.
#
# A commodity may have a price in two currencies: beanprice reads `price: "USD:... EUR:..."` and fetches both. By
# default it leaves out prices that the ledger already has. It compares only day and commodity, not the currency of
# the price, so the price in dollars makes it drop the one in euros. Seen with beancount 3.2.3 and Python 3.11:
#
#   in the ledger                         bean-price prints
#   nothing of 2026-01-02                 BTC 78910.12 EUR and BTC 91234.56 USD
#   2026-01-02 price BTC 91234.56 USD     nothing: no price in euros, no word about it, status 0
#
# Nothing makes up for it: each later run of that day drops it again. It needs no fault of the user: it is enough that
# one of two sources did not answer at the first run, or that the second currency was added later. With --clobber both
# are printed, the one that the ledger has already included. No report was found. The source below
# stands for any source, so nothing is fetched.
# Run it with `sh findings/beanprice_drops_a_second_currency.sh`. It ends with status 0 as long as that is so, with 1
# when it has changed, and with 2 when the packages cannot be installed.
set -eu

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT INT TERM

cat >"$folder/fixed_prices.py" <<'PYTHON'
from datetime import datetime, timezone
from decimal import Decimal

from beanprice.source import SourcePrice

PRICES = {"BTC-USD": "91234.56", "BTC-EUR": "78910.12"}


class Source:
    def get_latest_price(self, ticker):
        noon = datetime(2026, 1, 2, 12, tzinfo=timezone.utc)
        return SourcePrice(Decimal(PRICES[ticker]), noon, ticker.split("-")[1])

    def get_historical_price(self, ticker, time):
        return self.get_latest_price(ticker)
PYTHON

cat >"$folder/without.beancount" <<'TEXT'
2025-01-01 open Assets:Wallet
2025-01-01 open Equity:Opening
2025-01-01 commodity BTC
  price: "USD:fixed_prices/BTC-USD EUR:fixed_prices/BTC-EUR"
2025-01-01 * "Opening balance"
  Assets:Wallet   2 BTC {80000.00 USD}
  Assets:Wallet   1 BTC {70000.00 EUR}
  Equity:Opening
TEXT
{ cat "$folder/without.beancount"; echo "2026-01-02 price BTC 91234.56 USD"; } >"$folder/with.beancount"

python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check "beanprice==2.1.0" "beancount==3.2.3" \
    2>"$folder/pip" || { cat "$folder/pip" >&2; exit 2; }

ask() {
    TZ=UTC PYTHONPATH=$folder "$folder/venv/bin/bean-price" --no-cache "$@" | tr -s ' ' | sort
}

{
    echo "without a price of that day:"
    ask "$folder/without.beancount"
    echo "with the price in dollars:"
    ask "$folder/with.beancount"
    echo "with it and --clobber:"
    ask --clobber "$folder/with.beancount"
} | tee "$folder/seen"

cat >"$folder/described" <<'TEXT'
without a price of that day:
2026-01-02 price BTC 78910.12 EUR
2026-01-02 price BTC 91234.56 USD
with the price in dollars:
with it and --clobber:
2026-01-02 price BTC 78910.12 EUR
2026-01-02 price BTC 91234.56 USD
TEXT
cmp "$folder/seen" "$folder/described"
echo "As described: the price in euros is dropped."
