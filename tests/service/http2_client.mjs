// A customer whose polls all share one HTTP/2 connection, for test_edge.py.
//
// usage: http2_client.mjs URL CERTIFICATE KEY [WINDOW]
//
// With WINDOW 0 the server may send heads and no bodies: the client reads nothing.
// Each line of the input is a poll: {"id", "path", "tag", "wait"}. It is sent at once, however many wait. Each line
// of the output is an answer, as it comes: {"id", "status", "tag", "applied", "body"}. The first line says what was
// agreed on: {"protocol", "streams"}. {"id", "path", "unfinished": true} begins a POST and never ends it. {"cancel": ID}
// gives a poll up. When the input ends, the connection is closed, whatever waits on it.
import { readFileSync } from "node:fs";
import { connect, constants } from "node:http2";
import { createInterface } from "node:readline";

const [url, certificate, key, window] = process.argv.slice(2);
const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);
const streams = new Map();
const session = connect(url, { ca: readFileSync(certificate), ...(window && { settings: { initialWindowSize: Number(window) } }) });
session.once("remoteSettings", ({ maxConcurrentStreams }) =>
  say({ protocol: session.alpnProtocol, streams: maxConcurrentStreams }));
session.on("goaway", (code) => say({ goaway: code }));

// A POST without a key, of which one byte of 5000 is sent.
function begin({ id, path }) {
  const stream = session.request({ ":method": "POST", ":path": path, "content-type": "application/json", "content-length": 5000 });
  streams.set(id, stream);
  stream.on("error", () => {});
  stream.write("{");
}

function poll({ id, path, tag, wait }) {
  const headers = { ":path": path, authorization: `Bearer ${key}` };
  if (tag)
    Object.assign(headers, { "if-none-match": tag, prefer: `wait=${wait}` });
  const stream = session.request(headers);
  streams.set(id, stream);
  let body = "";
  let head = {};
  stream.setEncoding("utf8");
  stream.on("response", (fields) => { head = fields; });
  stream.on("data", (part) => { body += part; });
  stream.on("error", (error) => say({ id, error: error.code }));
  stream.on("end", () => head[":status"] && say({ id, status: head[":status"], tag: head.etag, applied: head["preference-applied"], body }));
}

const lines = createInterface({ input: process.stdin });
lines.on("line", (line) => {
  const order = JSON.parse(line);
  if ("cancel" in order)
    streams.get(order.cancel).close(constants.NGHTTP2_CANCEL);
  else if (order.unfinished)
    begin(order);
  else
    poll(order);
});
lines.on("close", () => session.destroy());
