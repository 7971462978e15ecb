#!/bin/sh
# pyarrow 26.0.1 multiplies decimals wrongly although the product fits: five splits make -116.28 in place of 224.
#
# Whoever chains splits or growth factors asks for the product of a column. decimal128(38, 18) is the type in which
# many keep prices; it holds values up to 10^20. Seen with Python 3.11 for the splits of Apple, 2, 2, 2, 7 and 4,
# whose product is 224:
#
#   pyarrow.compute.product, decimal128(38, 18)     -116.282366920938463463
#   Table.group_by(...).aggregate, likewise         -116.282366920938463463
#   pandas 3.0.6, Series.prod and groupby.prod      -116.282366920938463463
#   the same values as decimal128(38, 10)           224
#   one value alone: the product of 200             -140.282366920938463463
#
# No error, no warning. Two numbers are multiplied with 36 decimals in 128 bits before 18 decimals are cut off, so
# each step that exceeds 170.14 wraps around. `multiply` of two such columns is refused instead ("Decimal precision
# out of range"), which suggests that what is answered is right. Cast to a type with fewer decimals, or to decimal256,
# first. It is not the known missing check of https://github.com/apache/arrow/issues/37090: there the result itself is
# too large.
# Run it with `sh findings/pyarrow_product_of_decimals.sh`. It ends with status 0 as long as that is so, with 1 when
# it has changed, and with 2 when the packages cannot be installed.
set -eu

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT INT TERM

cat >"$folder/multiply.py" <<'PYTHON'
from decimal import Decimal

import pandas
import pyarrow
import pyarrow.compute

SPLITS = [Decimal(ratio) for ratio in (2, 2, 2, 7, 4)]
wide = pyarrow.array(SPLITS, pyarrow.decimal128(38, 18))
series = pandas.Series(SPLITS, dtype=pandas.ArrowDtype(wide.type))
table = pyarrow.table({"symbol": ["AAPL"] * len(SPLITS), "ratio": wide})


def product(values):
    return pyarrow.compute.product(values).as_py()


for words, seen in (
    ("compute.product", product(wide)),
    ("group_by", table.group_by("symbol").aggregate([("ratio", "product")]).to_pylist()[0]["ratio_product"]),
    ("pandas prod", series.prod()),
    ("pandas groupby", series.groupby(table["symbol"].to_pylist()).prod()["AAPL"]),
    ("one value", product(pyarrow.array([Decimal(200)], wide.type))),
    ("below the limit", product(wide[:4])),
    ("10 decimals", product(wide.cast(pyarrow.decimal128(38, 10)))),
    ("decimal256", product(wide.cast(pyarrow.decimal256(76, 18)))),
):
    print(f"{words}: {seen}")
PYTHON

python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check "pyarrow==26.0.1" "pandas==3.0.6" \
    2>"$folder/pip" || { cat "$folder/pip" >&2; exit 2; }
"$folder/venv/bin/python" "$folder/multiply.py" | tee "$folder/seen"

cat >"$folder/described" <<'TEXT'
compute.product: -116.282366920938463463
group_by: -116.282366920938463463
pandas prod: -116.282366920938463463
pandas groupby: -116.282366920938463463
one value: -140.282366920938463463
below the limit: 56.000000000000000000
10 decimals: 224.0000000000
decimal256: 224.000000000000000000
TEXT
cmp "$folder/seen" "$folder/described"
echo "As described: the product of the splits is negative."
