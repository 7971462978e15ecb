"""dlt from the REST provider into PostgreSQL: its own client, eight calls at once, CSV files loaded by COPY.
Run by the peers' environment; speaks the protocol of benchmarks/crew.py.

    dlt_backfill.py URL SYMBOLS YEARS FIRST LAST
"""

import json
import os
import resource
import sys
import tempfile

os.environ["RUNTIME__DLTHUB_TELEMETRY"] = "false"
os.environ["RUNTIME__LOG_LEVEL"] = "ERROR"
os.environ["EXTRACT__WORKERS"] = "8"
os.environ["NORMALIZE__WORKERS"] = str(os.cpu_count() or 1)

import dlt
from dlt.sources.helpers.rest_client import RESTClient


def main(url: str, symbols: int, first: str, last: str) -> None:
    client = RESTClient(base_url=url)
    columns = {name: {"data_type": "double"} for name in ("open", "high", "low", "close")}

    @dlt.resource
    def names():  # type: ignore[no-untyped-def]
        yield from (f"S{number}" for number in range(1, symbols + 1))

    @dlt.transformer(data_from=names, name="bars", parallelized=True, write_disposition="append", columns=columns)
    def bars(symbol):  # type: ignore[no-untyped-def]
        answer = client.get("/time_series", params={"symbol": symbol, "start_date": first, "end_date": last}).json()
        yield [{"symbol": symbol, **bar} for bar in answer["values"]]

    with tempfile.TemporaryDirectory() as folder:
        # It insists on a host; that of the query, a socket, is the one that counts.
        url_of_database = os.environ["BENCHMARK_DATABASE_URL"].replace("@/", "@localhost/")
        destination = dlt.destinations.postgres(url_of_database)
        pipeline = dlt.pipeline("bars", destination=destination, dataset_name="bars", pipelines_dir=folder)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.readline()
        pipeline.run(names | bars, loader_file_format=os.environ.get("DLT_FORMAT", "csv"))
        with pipeline.sql_client() as client_:
            rows = client_.execute_sql("SELECT count(*) FROM bars.bars")[0][0]
        sys.stdout.write(json.dumps([rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[4], sys.argv[5])
