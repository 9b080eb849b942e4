// Sends each line of standard input to every WebSocket that is open, as a team would do it with ws;
// nothing is admitted, counted or logged. Who connects is sent a message at once. Prints
// {"port": N} when it listens.

import readline from "node:readline";
import { WebSocketServer } from "ws";

const server = new WebSocketServer({ host: "127.0.0.1", port: 0, backlog: 4096, perMessageDeflate: false });
server.on("listening", () => console.log(JSON.stringify({ port: server.address().port })));
server.on("connection", (socket) => socket.send("hello"));
readline
  .createInterface({ input: process.stdin })
  .on("line", (line) => {
    for (const socket of server.clients) socket.send(line);
  })
  .on("close", () => process.exit(0));
