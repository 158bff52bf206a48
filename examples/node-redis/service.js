// A service that asks celld before it answers, with node-redis. Start it, and call it until it refuses:
//
//   npm install --prefix examples/node-redis
//   go -C examples run ./try node node-redis/service.js
//   curl -i http://127.0.0.1:8080/
const http = require("node:http");
const { setTimeout } = require("node:timers/promises");
const { createClient } = require("redis");

// Do not queue calls until the limiter is back.
const limiter = createClient({
  url: process.env.RATE_LIMITER || "redis://127.0.0.1:6379",
  disableOfflineQueue: true,
  socket: { connectTimeout: 500 },
});
limiter.on("error", () => {}); // ask reports errors
limiter.connect(); // and reconnects whenever the connection is lost

// ask returns the reply, or nothing without a limiter. It logs when it loses the limiter and when the limiter is back, not at
// each call.
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

// hello has a limit that protects the service from overload. Without the limiter it lets everybody in: better a service that
// is busy than one that is down because of its limiter.
async function hello(address, res) {
  // 10 a minute, all at once if need be. Further limits may follow: "10/1m", "100/1h". Times are milliseconds.
  const reply = await ask("CL.TAKE", `ip:${address}`, "10/1m");
  if (!reply) return answer(res, 200, "hello");
  const [limited, limit, remaining, retryMs, resetMs] = reply;
  verdict(res, "hello", "hello", limited, limit, remaining, retryMs / 1000, resetMs / 1000);
}

// login has a limit that stops people from guessing passwords. Without the limiter nobody may log in.
async function login(address, res) {
  // 5 a minute, and 4 + 1 of them at once. Times are seconds.
  const reply = await ask("CL.THROTTLE", `login:${address}`, "4", "5", "60");
  if (!reply) return answer(res, 503, "try again later");
  const [limited, limit, remaining, retryAfter, resetAfter] = reply;
  verdict(res, "login", "welcome", limited, limit, remaining, retryAfter, resetAfter);
}

function verdict(res, name, text, limited, limit, remaining, retryAfter, resetAfter) {
  res.setHeader("RateLimit-Policy", `"${name}";q=${limit};w=60`); // both limits are for a minute
  res.setHeader("RateLimit", `"${name}";r=${remaining};t=${Math.ceil(resetAfter)}`);
  if (!limited) return answer(res, 200, text);
  if (retryAfter >= 0) res.setHeader("Retry-After", Math.ceil(retryAfter)); // below 0: a rule denies it, and it will never pass
  answer(res, 429, "too many requests");
}

function answer(res, status, text) {
  res.writeHead(status).end(text + "\n");
}

const server = http.createServer((req, res) => {
  const address = req.socket.remoteAddress; // behind a proxy, use the address that the proxy reports
  (req.url === "/login" ? login : hello)(address, res);
});
const [host, port] = (process.env.LISTEN || "127.0.0.1:8080").split(":"); // in a container 0.0.0.0:8080
server.listen(Number(port), host, () => console.log(`listening on http://${host}:${server.address().port}/`));
