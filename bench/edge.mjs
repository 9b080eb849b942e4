// Polls that wait, for bench/edge.py: any number of them of one event, over HTTP/2 on one connection or over HTTP/1.1 on
// one each.
//
// usage: edge.mjs h2|h1 URL PATH KEY POLLS
//
// A poll asks again as soon as it is answered. A delivery is `"t":"N"` in an answer, N in 19 digits the nanoseconds of
// CLOCK_MONOTONIC when the message was made. Writes "ready" when each poll has been answered once, begins to count then,
// and writes what it has counted when its standard input ends.
import http from "node:http";
import https from "node:https";
import http2 from "node:http2";

const [version, url, path, key, polls] = process.argv.slice(2);
const took = [];
let answered = 0;

function fail(what) {
  console.error(`edge.mjs: ${what}`);
  process.exit(1);
}

/** Each sends one request and calls back with status, tag and body. */
function overHttp2() {
  const session = http2.connect(url, { rejectUnauthorized: false });
  session.on("error", fail).on("close", () => fail("the connection has ended"));
  return (headers, done) => {
    const stream = session.request({ ":path": path, ...headers });
    let head;
    let body = "";
    stream.setEncoding("utf8").on("response", (fields) => { head = fields; }).on("data", (part) => { body += part; });
    stream.on("error", fail).on("end", () => done(head[":status"], head.etag, body));
  };
}

function overHttp1() {
  const client = url.startsWith("https:") ? https : http;
  const agent = new client.Agent({ keepAlive: true, maxSockets: Infinity });
  return (headers, done) => {
    client.get(url + path, { agent, headers, rejectUnauthorized: false }, (answer) => {
      let body = "";
      answer.setEncoding("utf8").on("data", (part) => { body += part; });
      answer.on("end", () => done(answer.statusCode, answer.headers.etag, body));
    }).on("error", fail);
  };
}

const send = version === "h2" ? overHttp2() : overHttp1();

function poll(tag, first) {
  const headers = tag ? { "x-api-key": key, "if-none-match": tag, prefer: "wait=55" } : { "x-api-key": key };
  send(headers, (status, newTag, body) => {
    if (status !== 200 && status !== 304)
      fail(`${status} ${body}`);
    const made = /"t":"(\d{19})"/.exec(body);
    if (made && answered === Number(polls))
      took.push(Number(process.hrtime.bigint() - BigInt(made[1])) / 1e6);
    if (first && ++answered === Number(polls))
      process.stdout.write("ready\n");
    poll(newTag, false);
  });
}

for (let i = 0; i < Number(polls); i++)
  poll(null, true);
process.stdin.resume().on("end", () => {
  took.sort((one, other) => one - other);
  const at = (share) => took[Math.floor((took.length - 1) * share)] ?? 0;
  process.stdout.write(`${JSON.stringify({ deliveries: took.length, p50_ms: at(0.5), p99_ms: at(0.99) })}\n`);
  process.exit(0);
});
