// A service that asks celld before it answers, with node-redis. Start it, and call it until it says no:
//
//   npm install
//   node service.js
//   curl -i http://127.0.0.1:8080/
const http = require("node:http");
const { setTimeout } = require("node:timers/promises");
const { createClient } = require("redis");

// Calls are not kept until the limiter is back.
const limiter = createClient({
  url: process.env.RATE_LIMITER || "redis://127.0.0.1:6379",
  disableOfflineQueue: true,
  socket: { connectTimeout: 500 },
});
limiter.on("error", () => {}); // ask says so
limiter.connect(); // and again, whenever it is lost

// ask returns the reply, or nothing without a limiter. It logs when that goes and when it comes back, not at each call between.
let down = false;
async function ask(...command) {
  // Half a second is the most that a request waits for the limiter, which takes well under a millisecond on the same host.
  const late = setTimeout(500, undefined, { ref: false }).then(() => Promise.reject(new Error("no answer within 500 ms")));
  const [reply, error] = await Promise.race([limiter.sendCommand(command), late]).then((reply) => [reply], (e) => [undefined, e]);
  if (down !== Boolean(error)) {
    down = Boolean(error);
    console.error("rate limiter:", error ? error.message : "answers again");
  }
  return reply;
}

// hello has a limit that keeps the service from drowning. Without the limiter it lets everybody in: better a service that
// is busy than one that is down because of its limiter.
async function hello(address, res) {
  // 10 a minute, all at once if need be. Further limits may follow: "10/1m", "100/1h". Times are milliseconds.
  const reply = await ask("CL.TAKE", `ip:${address}`, "10/1m");
  if (!reply) return answer(res, 200, "hello");
  const [limited, limit, remaining, retryMs] = reply;
  verdict(res, "hello", limited, limit, remaining, retryMs / 1000);
}

// login has a limit that keeps out who guesses passwords. Without the limiter nobody may try.
async function login(address, res) {
  // 5 a minute, 4 more at once than one. Times are seconds.
  const reply = await ask("CL.THROTTLE", `login:${address}`, "4", "5", "60");
  if (!reply) return answer(res, 503, "try again later");
  const [limited, limit, remaining, retryAfter] = reply;
  verdict(res, "welcome", limited, limit, remaining, retryAfter);
}

function verdict(res, text, limited, limit, remaining, retryAfter) {
  res.setHeader("RateLimit-Limit", limit).setHeader("RateLimit-Remaining", remaining);
  if (!limited) return answer(res, 200, text);
  if (retryAfter >= 0) res.setHeader("Retry-After", Math.ceil(retryAfter)); // below 0: it will never pass, as where a rule denies it
  answer(res, 429, "too many requests");
}

function answer(res, status, text) {
  res.writeHead(status).end(text + "\n");
}

const server = http.createServer((req, res) => {
  const address = req.socket.remoteAddress; // behind a proxy, take what the proxy says instead
  (req.url === "/login" ? login : hello)(address, res);
});
const [host, port] = (process.env.LISTEN || "127.0.0.1:8080").split(":"); // in a container 0.0.0.0:8080
server.listen(Number(port), host, () => console.log(`listening on http://${host}:${server.address().port}/`));
