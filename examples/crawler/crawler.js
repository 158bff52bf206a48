// A polite crawler: it and all others that run ask each host for two pages a second at most, evenly, first come first served.
//
//   npm install --no-save --prefix examples ioredis
//   go -C examples run ./try node crawler/crawler.js http://127.0.0.1:8000/a http://127.0.0.1:8000/b
const Redis = require("ioredis");

// No retries: a call that asks again is at the end of the queue.
const options = { maxRetriesPerRequest: 0, autoResendUnfulfilledCommands: false };

// turn returns when the host may be asked.
async function turn(limiter, host) {
  for (;;) {
    const [limited, , , retryMs] = await limiter.call("CL.TAKE", `host:${host}`, "2/1s,burst=1", "WAIT", 60_000);
    if (!limited) return;
    if (retryMs < 0) throw new Error(`${host} is not to be crawled`); // a rule denies it
    await new Promise((resolve) => setTimeout(resolve, retryMs)); // the queue is longer than a minute
  }
}

// Each worker has a connection: a call that waits keeps others on its connection waiting.
async function work(pages) {
  const limiter = new Redis(process.env.RATE_LIMITER || "redis://127.0.0.1:6379", options);
  limiter.on("error", () => {}); // call reports errors
  try {
    for (let page; (page = pages.shift()); ) {
      await turn(limiter, new URL(page).host);
      const response = await fetch(page);
      console.log(response.status, page);
    }
  } finally {
    limiter.disconnect();
  }
}

const pages = process.argv.slice(2);
Promise.all([1, 2, 3, 4].map(() => work(pages))).catch((error) => {
  console.error(error.message); // without a limiter it does not crawl: nobody would know how fast
  process.exit(1);
});
