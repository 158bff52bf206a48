// A distributed lock: it adds 1 to a number that a server keeps, as often as you say, while others do the same.
//
// The lock ends five seconds after it was taken, whether its holder knows or not: the holder may be paused, or its clock may
// run slow. So the lock alone does not protect the number. Each holder gets an id that is higher than all before; it sends the
// id along, and the server refuses a write with a lower id than it has seen. A server that cannot do this may see two
// holders write at once. The lock also ends when celld loses its data: let it keep them on disk (--appendonly yes), and
// it goes on after a restart.
//
//   npm install --no-save --prefix examples ioredis
//   go -C examples run ./try node lock/lock.js http://127.0.0.1:8000/number 10
const Redis = require("ioredis");

const key = "lock:number";
const lock = "1/5s,algo=conc";

// No retries: a call whose reply was lost may have the lock, which then ends by itself. A program that takes several locks at
// once needs a connection for each: a call that waits keeps others on its connection waiting.
const limiter = new Redis(process.env.RATE_LIMITER || "redis://127.0.0.1:6379", {
  maxRetriesPerRequest: 0,
  autoResendUnfulfilledCommands: false,
});
limiter.on("error", () => {}); // call reports errors

// locked calls work with the lock held, and its id.
async function locked(work) {
  const [limited, , , , , , , id] = await limiter.call("CL.TAKE", key, lock, "WAIT", 60_000);
  if (limited) throw new Error("no lock within a minute");
  try {
    return await work(id);
  } finally {
    await limiter.call("CL.RELEASE", key, id); // 0, and does nothing, if the lock has ended or is another's
  }
}

async function add(number, id) {
  const n = Number(await (await fetch(number)).text()) + 1;
  const response = await fetch(number, { method: "PUT", body: String(n), headers: { "Fencing-Token": String(id) } });
  if (response.status === 409) throw new Error("another has had the lock since");
  console.log(n);
}

(async () => {
  const [number, times] = process.argv.slice(2);
  for (let i = 0; i < Number(times); i++) await locked((id) => add(number, id));
  limiter.disconnect();
})().catch((error) => {
  console.error(error.message);
  process.exit(1);
});
