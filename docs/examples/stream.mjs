// Prints the live stream of a pair as it comes, and goes on after a break. See docs/api.md, "In JavaScript".
const url = process.env.API_URL ?? "http://127.0.0.1:8000";
let lastId = null;

async function* readStream(pairs) {
  const headers = { Authorization: `Bearer ${process.env.TOKEN}` };
  if (lastId) headers["Last-Event-ID"] = lastId;
  const silence = new AbortController();
  let timer = setTimeout(() => silence.abort(), 45_000);
  const signal = silence.signal;
  const response = await fetch(`${url}/v1/stream?user=alice&pairs=${pairs}`, { headers, signal });
  if (!response.ok) throw new Error((await response.json()).detail);
  let text = "";
  try {
    for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), 45_000);
      const blocks = (text + chunk).split("\n\n");
      text = blocks.pop();
      for (const block of blocks) {
        const fields = {};
        for (const line of block.split("\n")) {
          const [, name, value] = line.match(/^([^:]*):? ?(.*)$/);
          fields[name] = value;
        }
        if ("id" in fields) lastId = fields.id || null;
        if (fields.data) yield { kind: fields.event, ...JSON.parse(fields.data) };
      }
    }
  } finally {
    clearTimeout(timer);
  }
}

for (;;) {
  try {
    for await (const event of readStream("equity_quote:AAPL")) {
      console.log(event.kind, event.symbol ?? "", event.price ?? "");
      if (event.kind === "ready" && process.env.ONCE) process.exit(0);
    }
  } catch (error) {
    console.error(error.message);
  }
  await new Promise((resolve) => setTimeout(resolve, 1000));
}
