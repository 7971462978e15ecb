#!/bin/sh
# twelvedata 1.4.0 makes numbers of symbols: 000001, a bank in Shenzhen, becomes 1 in a frame of pandas.
#
# Exchanges in China, Hong Kong, Korea and Japan name shares by digits. The client of Twelve Data turns each column of a
# list of instruments into numbers where all its values look like some. Seen with pandas 3.0.6 and Python 3.11, for an
# answer with the symbols "000001" and "300750", in the documented shape of /stocks and /symbol_search:
#
#   get_stocks_list(exchange="SZSE").as_json()      '000001', '300750'
#   get_stocks_list(exchange="SZSE").as_pandas()    1, 300750 (int64)
#   symbol_search(symbol="000001").as_pandas()      1
#
# No error, no warning. Asked for prices by what the frame says, the provider knows no such share, or answers for
# another one: 1 and 000001 are different symbols. It depends on the other rows, too: where one symbol of the list has
# a letter, all stay as they are. Take as_json(). No report was found. A server on this machine gives the answers.
# Run it with `sh findings/twelvedata_reads_symbols_as_numbers.sh`. It ends with status 0 as long as that is so, with
# 1 when it has changed, and with 2 when the packages cannot be installed.
set -eu

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT INT TERM

cat >"$folder/list.py" <<'PYTHON'
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from twelvedata import TDClient

BANK = {"symbol": "000001", "name": "Ping An Bank Co., Ltd.", "currency": "CNY", "exchange": "SZSE"}
MAKER = {"symbol": "300750", "name": "Contemporary Amperex Technology", "currency": "CNY", "exchange": "SZSE"}
LETTERS = {"symbol": "AAPL", "name": "Apple Inc.", "currency": "USD", "exchange": "NASDAQ"}


class Answers(BaseHTTPRequestHandler):
    def do_GET(self):
        asked = urlsplit(self.path)
        if asked.path == "/stocks":
            data = [BANK, MAKER] if parse_qs(asked.query).get("exchange") == ["SZSE"] else [BANK, MAKER, LETTERS]
        else:
            data = [BANK] if asked.path == "/symbol_search" else {}
        body = json.dumps({"data": data, "status": "ok"}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
threading.Thread(target=server.serve_forever, daemon=True).start()
client = TDClient(apikey="demo", base_url=f"http://127.0.0.1:{server.server_port}")

print("as_json:", [row["symbol"] for row in client.get_stocks_list(exchange="SZSE").as_json()])
print("as_pandas:", client.get_stocks_list(exchange="SZSE").as_pandas()["symbol"].to_list())
print("with a symbol of letters:", client.get_stocks_list().as_pandas()["symbol"].to_list())
print("symbol_search:", client.symbol_search(symbol="000001").as_pandas()["symbol"].to_list())
PYTHON

python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check "twelvedata==1.4.0" "pandas==3.0.6" \
    2>"$folder/pip" || { cat "$folder/pip" >&2; exit 2; }
NO_PROXY=127.0.0.1 timeout 120 "$folder/venv/bin/python" "$folder/list.py" | tee "$folder/seen"

cat >"$folder/described" <<'TEXT'
as_json: ['000001', '300750']
as_pandas: [1, 300750]
with a symbol of letters: ['000001', '300750', 'AAPL']
symbol_search: [1]
TEXT
cmp "$folder/seen" "$folder/described"
echo "As described: symbols of digits have become numbers."
