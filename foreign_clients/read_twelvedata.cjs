// What the package `twelvedata` for JavaScript reads: read_twelvedata.cjs BASE_URL KEY, JSON to stdout.

const [base, key] = process.argv.slice(2);

/** Asks BASE_URL for what is meant for the service: the package has no setting for another host. */
function moved(url, options) {
  const instead = url.replace(/^https:\/\/api\.twelvedata\.com/, base);
  if (instead === url) throw new Error(`${url} is not Twelve Data's`);
  return fetch(instead, options);
}
require.cache[require.resolve("cross-fetch")] = { exports: moved };

const client = require("twelvedata")({ key });
const span = { interval: "1day", start_date: "2005-02-22", end_date: "2005-03-04", order: "asc" };

(async () => {
  const found = {
    quote: await client.quote({ symbol: "AAPL" }),
    prices: await client.price({ symbol: "AAPL,MSFT" }),
    series: await client.timeSeries({ symbol: "AAPL", ...span }),
    many: await client.timeSeries({ symbol: "AAPL,IBM", ...span }),
    search: await client.symbolSearch({ symbol: "vodafone" }),
    unknown: await client.quote({ symbol: "NOPE" }).catch(String),
  };
  console.log(JSON.stringify(found));
})();
