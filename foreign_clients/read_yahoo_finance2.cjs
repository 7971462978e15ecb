// What the package `yahoo-finance2` reads: read_yahoo_finance2.cjs BASE_URL, JSON to stdout.

const YahooFinance = require("yahoo-finance2").default;

const [base] = process.argv.slice(2);

/** Asks BASE_URL for what is meant for a host of Yahoo; its cookies are for all of these hosts. */
async function moved(url, options) {
  const instead = String(url).replace(/^https:\/\/[a-z0-9.]+\.yahoo\.com/, base);
  if (instead === String(url)) throw new Error(`${url} is not Yahoo's`);
  const { origin, ...sent } = options.headers; // the sandbox is for no web page
  const answer = await fetch(instead, { ...options, headers: sent });
  const headers = new Headers(answer.headers);
  headers.delete("set-cookie");
  for (const cookie of answer.headers.getSetCookie()) headers.append("set-cookie", `${cookie}; Domain=.yahoo.com`);
  return new Response(await answer.text(), { status: answer.status, statusText: answer.statusText, headers });
}

const silent = { info() {}, warn() {}, error() {}, debug() {}, dir() {} };
const client = new YahooFinance({ fetch: moved, logger: silent, suppressNotices: ["yahooSurvey"] });

(async () => {
  const span = { period1: "2005-02-22", period2: "2005-03-05" };
  const { quotes, events, meta } = await client.chart("AAPL", span);
  const found = {
    bars: quotes,
    splits: events.splits,
    zone: meta.exchangeTimezoneName,
    quotes: await client.quote(["AAPL", "VOD.L", "EURUSD=X", "BTC-USD", "NOPE"]),
    unknown: await client.chart("NOPE", span).catch(String),
  };
  console.log(JSON.stringify(found));
})();
