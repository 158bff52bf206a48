// What the scripts of this folder share: connections, and a record of what a library has answered.
const Redis = require("ioredis");
const { createClient } = require("redis");

const slack = 2; // ms, as both sides round

// connect opens a connection by one of the two clients, which the libraries take as it is. An address is unix:PATH or HOST:PORT.
async function connect(kind, address) {
  const [host, port] = address.split(":");
  const socket = host === "unix" ? { path: port } : { host, port: Number(port) };
  if (kind === "ioredis") {
    const client = new Redis(socket);
    return { client, call: (...words) => client.call(...words), close: () => client.quit() };
  }
  const client = createClient({ socket });
  await client.connect();
  return { client, call: (...words) => client.sendCommand(words.map(String)), close: () => client.close() };
}

// scenario runs what a script does, with 4 connections, and prints one JSON object: a line for each call, the times that were wrong,
// and how many of 200 callers at once were admitted. The arguments are the address, the client and a prefix for all keys.
async function scenario(run) {
  const [address, kind, prefix] = process.argv.slice(2);
  const out = { lines: [], faults: [], admitted: -1 };
  const say = (call, ...answers) => out.lines.push([call, ...answers].map(String).join(" "));
  const fault = (text) => out.faults.push(`after "${out.lines.at(-1)}": ${text}`);

  // Window is a span of time that begins with a call.
  class Window {
    constructor(ms) {
      this.ms = ms;
    }

    async begin(call) {
      this.before = Date.now();
      const answer = await call();
      this.after = Date.now();
      return answer;
    }

    // left checks what a call just answered to be left of the window, in ms.
    left(ms, unit = 1) {
      const low = Math.ceil((this.ms - (Date.now() - this.before) - slack) / unit);
      const high = Math.ceil((this.ms + slack) / unit);
      if (!(ms >= low && ms <= high)) fault(`${ms} left, want ${low} to ${high}`);
    }

    seconds(s) {
      this.left(Number(s), 1000);
    }

    // hold repeats a call until half of the window is over. It returns what the call answered: one answer, if all were the same.
    async hold(call) {
      const answers = new Set();
      do answers.add(await call());
      while (Date.now() < this.after + this.ms / 2);
      return [...answers].join(" or ");
    }

    // end waits until a key has gone, and checks that it goes at the end of the window.
    async end(key) {
      for (;;) {
        const asked = Date.now();
        if ((await connections[0].call("EXISTS", key)) === 0) break;
        if (asked > this.after + this.ms + slack) return fault(`${key} is there ${asked - this.after} ms later, want ${this.ms}`);
      }
      if (Date.now() < this.before + this.ms - slack) fault(`${key} has gone ${Date.now() - this.before} ms later, want ${this.ms}`);
    }
  }

  // atOnce lets 200 callers call, by each of the 4 connections in turn. A call says whether it was admitted.
  const atOnce = async (call) => {
    const admitted = await Promise.all(Array.from({ length: 200 }, (_, i) => call(i % connections.length)));
    out.admitted = admitted.filter(Boolean).length;
  };

  const connections = await Promise.all([1, 2, 3, 4].map(() => connect(kind, address)));
  await run({ connections, kind, prefix, say, fault, Window, atOnce });
  await Promise.all(connections.map((c) => c.close()));
  console.log(JSON.stringify(out));
}

// start runs run, and lets the process fail if it fails.
function start(run) {
  scenario(run).catch((err) => {
    console.error(err);
    process.exit(1);
  });
}

module.exports = { start };
