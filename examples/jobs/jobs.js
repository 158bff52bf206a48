// Workers for jobs of which three may run at once and five start in a second, however many workers there are. A job that
// outlives its worker makes room for another after ten seconds.
//
//   npm install --no-save --prefix examples ioredis
//   go -C examples run ./try node jobs/jobs.js http://127.0.0.1:8000/a http://127.0.0.1:8000/b
const Redis = require("ioredis");

const key = "jobs:reports";
const running = "3/10s,algo=conc"; // a lease that is not renewed ends after 10 seconds
const starts = "5/1s";

// No retries: a call whose reply was lost may have got a lease.
const options = { maxRetriesPerRequest: 0, autoResendUnfulfilledCommands: false };
const connect = () =>
  new Redis(process.env.RATE_LIMITER || "redis://127.0.0.1:6379", options).on("error", () => {}); // call reports errors
const limiter = connect();

// A worker has a connection to wait on: a call that waits keeps others on its connection waiting.
async function work(jobs) {
  const waiting = connect();
  try {
    for (let job; (job = jobs.shift()); ) await run(waiting, job);
  } finally {
    waiting.disconnect();
  }
}

async function run(waiting, job) {
  let limited, lease; // it takes from both limits or from neither
  do [limited, , , , , , , lease] = await waiting.call("CL.TAKE", key, running, starts, "WAIT", 60_000);
  while (limited);

  const stop = new AbortController(); // when the lease is lost, and another may have the job's place
  const renew = setInterval(async () => {
    const kept = await limiter.call("CL.RENEW", key, lease, 10_000).catch(() => 0);
    if (!kept) stop.abort(new Error("its lease has ended"));
  }, 3000);
  try {
    const response = await fetch(job, { method: "POST", signal: stop.signal });
    console.log(job, await response.text());
  } finally {
    clearInterval(renew);
    await limiter.call("CL.RELEASE", key, lease);
  }
}

const jobs = process.argv.slice(2);
Promise.all([1, 2, 3, 4].map(() => work(jobs)))
  .then(() => limiter.disconnect())
  .catch((error) => {
    console.error(error.message);
    process.exit(1);
  });
