// A budget for a language model: of requests and tokens a minute, and of requests in flight. Before a request it takes all
// three, with as many tokens as the request may cost at most; afterwards it gives back what was not used. A worker that dies in
// between costs nothing in the end: after two minutes all that it took flows back. The same request, sent again under its
// name, takes nothing more.
//
//   npm install --no-save --prefix examples ioredis
//   go -C examples run ./try node tokens/tokens.js http://127.0.0.1:8000/model request-17 "Why is the sky blue?"
//
// A celld of your own needs a policy: CL.POLICY SET llm 600/1m 100000/1m,name=tokens 20/2m,algo=conc
const Redis = require("ioredis");

const key = "llm:research"; // a team's
const answer = 1000; // tokens that the model may answer with
const longest = 60_000; // ms of a request
const leased = 120_000; // ms, so that the lease does not end before the request does

// It may repeat a call: with an ID that does no harm. A call that waits keeps others on its connection waiting, so whoever asks
// for several requests at once has a connection for each, or a pool.
const limiter = new Redis(process.env.RATE_LIMITER || "redis://127.0.0.1:6379");
limiter.on("error", () => {}); // call reports errors

// ask sends a request when the budget allows it, and returns how many tokens it has used.
async function ask(model, name, prompt) {
  const most = Buffer.byteLength(prompt) + answer; // a byte is a token at most
  const [limited, , , retryMs, , , , lease] = await limiter.call(
    "CL.TAKE", key, "@llm", "COST", most, "OF", "tokens", "WAIT", 60_000, "LEASE", leased, "ID", name
  );
  if (limited) throw new Error(`over budget; try again in ${retryMs} ms`); // -1: it costs more than the whole budget
  let used = most; // nobody knows what an answer costs that breaks off
  try {
    used = await complete(model, prompt);
  } catch (error) {
    if (error instanceof Refused || ["ECONNREFUSED", "ENOTFOUND"].includes(error.cause?.code)) used = 0;
    throw error;
  } finally {
    await charge(lease, used);
  }
  return used;
}

// charge charges the tokens. A lease that has ended has given back all that it held, so these are taken once more.
async function charge(lease, used) {
  const settled = await limiter.call("CL.SETTLE", key, lease, used, "OF", "tokens");
  if (!settled) await limiter.call("CL.TAKE", key, "@llm", "COST", 0, "COST", used, "OF", "tokens", "FORCE");
}

// Refused is the error of a request that the model did not accept, so it has cost nothing.
class Refused extends Error {}

// complete stands for the model's client. Its timeout is for the whole answer.
async function complete(model, prompt) {
  const response = await fetch(model, { method: "POST", body: prompt, signal: AbortSignal.timeout(longest) });
  if (!response.ok) throw new Refused(`the model does not accept the request: ${response.status}`);
  return (await response.json()).usage.total_tokens;
}

ask(...process.argv.slice(2))
  .then((used) => console.log("used", used))
  .catch((error) => {
    console.error(error.message);
    process.exitCode = 1;
  })
  .finally(() => limiter.disconnect());
