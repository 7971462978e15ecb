"""Prices for the assets of other projects, as frames of pandas, polars or Arrow, with exact decimals.

No postponed annotations here: Dagster reads the fields of a resource when its class is made.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, TypeVar

import dagster as dg
from pydantic import Field, PrivateAttr
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.db.engine import checked_url, make_engine
from pricing_pipeline.db.errors import is_refusal, reason
from pricing_pipeline.db.location import reader_url
from pricing_pipeline.demand import instruments
from pricing_pipeline.domain.answers import Adjust
from pricing_pipeline.domain.data_types import Contents
from pricing_pipeline.domain.prices import Price
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.errors import InvalidRange, PricingError, SettingsError, UnknownDataType
from pricing_pipeline.prices import arrow, frames, price_reader
from pricing_pipeline.prices.conversion import LatestRates, Target
from pricing_pipeline.prices.files import OtherFile
from pricing_pipeline.registry import calendars, data_type_registry
from pricing_pipeline.settings import load_settings_as_guest

if TYPE_CHECKING:
    import polars
    import pyarrow
    from pandas import DataFrame

T = TypeVar("T")

_SETTING = "the url of PricingReader"
_FIRST_DAY = date(1, 1, 1)
_NO_POLARS = (
    "a frame of polars needs polars, which is not installed here. Install it beside Dagster: pip install polars. "
    "pandas() needs nothing."
)


@dataclass(frozen=True)
class Prices:
    """Prices that each call reads again, in one snapshot. Every number is an exact decimal; times are UTC."""

    _in: Callable[[Callable[[Connection], Any]], Any]
    """Calls a function with a connection."""
    _as_pandas: Callable[[Connection], "DataFrame"]
    _as_arrow: Callable[[Connection], "pyarrow.Table"]

    def pandas(self) -> "DataFrame":
        """A frame of pandas; its numbers are `decimal.Decimal`, with the digits that are stored."""
        frame: DataFrame = self._in(self._as_pandas)
        return frame

    def polars(self) -> "polars.DataFrame":
        """A frame of polars; its numbers are Decimals. Raises PricingError without polars or pyarrow."""
        try:
            import polars
        except ImportError as error:
            raise PricingError(_NO_POLARS) from error

        frame = polars.from_arrow(self.arrow())
        assert isinstance(frame, polars.DataFrame)  # noqa: S101 - a table becomes nothing else
        return frame

    def arrow(self) -> "pyarrow.Table":
        """A table of pyarrow; its numbers are decimal128. Raises PricingError without pyarrow."""
        return self._in(self._as_arrow)


class PricingReader(dg.ConfigurableResource[Any]):
    """Reads latest prices and histories from the pricing database, and writes nothing.

    Reads queue nothing: a price is fetched while somebody watches or holds it.
    """

    url: str | None = Field(
        default=None,
        repr=False,
        description="libpq URL of the pricing database, best of a login in pricing_reader, given as dg.EnvVar. Unset: "
        "PRICING_READER_URL, PRICING_DATABASE_URL, or the server in PRICING_HOME.",
    )

    _is_in_a_run: bool = PrivateAttr(default=False)

    def setup_for_execution(self, context: dg.InitResourceContext) -> None:
        """Note that Dagster has put the variable's value in its place.

        Raises SettingsError for a run whose config gives another address: its assets would be made from other prices.
        """
        self._is_in_a_run = True
        definition = context.resource_def
        # In another resource it cannot be configured.
        if getattr(definition, "configurable_resource_cls", None) is not type(self):
            return
        ours = (definition.config_schema.default_value or {}).get("url")
        if isinstance(ours, dict):
            ours = dg.EnvVar(ours["env"]).get_value()
        if self.url != ours:
            raise SettingsError(
                "a run's config gives the url of PricingReader, which only the code may give: anyone who starts a run "
                "could have assets made from prices of another database. Leave it out of the config"
            )

    def get_resource_definition(self) -> Any:
        """What Dagster makes of a resource. Raises SettingsError for a password that it would show and keep."""
        url = self.url
        if url is not None and not isinstance(url, dg.EnvVar) and not self._is_in_a_run:
            parsed = checked_url(url, _SETTING)
            if parsed.password is not None or {"password", "sslpassword"} & parsed.query.keys():
                raise SettingsError(
                    "the url of PricingReader has a password in it, which Dagster would show in its UI and keep in its "
                    'storage. Put the URL into a variable of the environment, and give url=dg.EnvVar("ITS_NAME")'
                )
        return super().get_resource_definition()

    def latest(self, data_type: str, symbols: Sequence[str] | None = None, *, currency: str | None = None) -> Prices:
        """The latest prices of a data type, by symbol: of some symbols, or of all that have one.

        `state` says whether a price is fresh. With `currency` prices are converted by the latest stored rates, and
        `rate` names them; a price without a rate is None, and `rate` says so. Reading the result raises
        UnknownDataType, and PricingError for a symbol that no instrument of the type has.
        """
        into = None if currency is None else Target.named(currency)

        def found(connection: Connection) -> list[Price]:
            wanted = _wanted(connection, data_type, symbols)
            if wanted is None:
                prices = price_reader.latest_of_type(connection, data_type)
            else:
                prices = price_reader.latest(connection, *wanted, data_type=data_type)
            return prices if into is None else LatestRates(connection, into).in_place(prices)

        is_converted = into is not None
        return Prices(
            self._read,
            lambda connection: frames.frame_of_latest(found(connection), is_converted=is_converted),
            lambda connection: arrow.table_of_latest(found(connection), is_converted=is_converted),
        )

    def history(
        self,
        data_type: str,
        symbols: Sequence[str] | None = None,
        *,
        first_day: date | None = None,
        last_day: date | None = None,
        as_of: datetime | None = None,
        adjust: Adjust | str | None = None,
        currency: str | None = None,
    ) -> Prices:
        """Values between two UTC days, both included, by symbol and time: of some symbols, or of all that have any.

        Without a first day they begin with the first value, without a last day they end today. `as_of` (with a zone)
        reads what was believed then. `adjust` is `raw`, `splits` or `total`; without it each value is as stored.
        `currency` converts prices by the rates of their time, which `rate` names. Reading the result raises
        UnknownDataType, InvalidRange, InvalidAdjustment, UncountedPayments, and PricingError for a symbol that no
        instrument of the type has.
        """
        return self.history_of_spans(
            data_type,
            symbols,
            [(first_day or _FIRST_DAY, last_day)],
            as_of=as_of,
            adjust=adjust,
            currency=currency,
        )

    def history_of_spans(
        self,
        data_type: str,
        symbols: Sequence[str] | None,
        spans: Sequence[tuple[date, date | None]],
        *,
        as_of: datetime | None = None,
        adjust: Adjust | str | None = None,
        currency: str | None = None,
    ) -> Prices:
        """The same of several spans of days, which must be in order and apart; the last may end today (None)."""
        into = None if currency is None else Target.named(currency)

        def reads(connection: Connection) -> Iterator[tuple[str, Window]]:
            for day in (day for span in spans for day in span if day is not None):
                # A datetime is a date to the type checker, and cannot be compared with one.
                if type(day) is not date:
                    raise InvalidRange(f"{day!r} is not a day. Give a datetime.date, such as date(2020, 1, 31).")
            today = calendars.today(connection)
            windows = [Window(first, max(first, today) if last is None else last) for first, last in spans]
            wanted = _wanted(connection, data_type, symbols)
            if wanted is None and windows:
                wanted = price_reader.symbols_between(
                    connection, data_type, windows[0].start, windows[-1].end, as_of=as_of
                )
            return ((symbol, window) for symbol in wanted or () for window in windows)

        def as_pandas(connection: Connection) -> "DataFrame":
            return frames.joined(
                (
                    (
                        symbol,
                        price_reader.history(
                            connection,
                            symbol,
                            data_type,
                            days.start,
                            days.end,
                            as_of=as_of,
                            adjust=adjust,
                            currency=currency,
                        ),
                    )
                    for symbol, days in reads(connection)
                ),
                is_converted=into is not None,
            )

        def as_arrow(connection: Connection) -> "pyarrow.Table":
            return arrow.joined(
                (
                    (symbol, part)
                    for symbol, days in reads(connection)
                    for part in price_reader.history_parts(
                        connection,
                        symbol,
                        data_type,
                        days.start,
                        days.end,
                        as_of=as_of,
                        adjust=adjust,
                        into=into,
                    )
                ),
                is_converted=into is not None,
            )

        return Prices(self._read, as_pandas, as_arrow)

    def _read(self, work: Callable[[Connection], T]) -> T:
        """What `work` reads, in one snapshot; read again if a month has meanwhile been written into another file."""
        with self._connection() as connection:
            try:
                return work(connection)
            except OtherFile:
                pass
        with self._connection() as connection:
            return work(connection)

    @contextmanager
    def _connection(self) -> Iterator[Connection]:
        """A session for one read: assets read now and then, and leave none open in processes that are not ours."""
        url = self.url if self.url is not None else reader_url(load_settings_as_guest())
        engine = make_engine(url, pool_size=1, setting=_SETTING)
        try:
            with engine.connect() as connection:
                yield connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        except DBAPIError as error:
            if not is_refusal(error):
                raise
            raise PricingError(reason(error)) from error
        finally:
            engine.dispose()


def _wanted(connection: Connection, data_type: str, symbols: Sequence[str] | None) -> list[str] | None:
    """Symbols as their instruments are spelled, each once; None for all. Raises UnknownDataType."""
    type_ = data_type_registry.about(connection, data_type)
    if type_ is None:
        data_type_registry.active_data_type(connection, data_type)  # raises, and lists the types there are
    elif type_["contents"] != Contents.PRICES:
        raise UnknownDataType(f"{data_type} is a type of {type_['contents']}, not of prices.")
    if symbols is None:
        return None
    if isinstance(symbols, str):
        raise PricingError(f"symbols={symbols!r} is one text. Give a list: [{symbols!r}]")
    return sorted({*instruments.symbols_by_type(connection, [data_type], symbols)[data_type]})
