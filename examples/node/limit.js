// Asks celld whether one more call of a key may pass, with ioredis (npm install ioredis).
const Redis = require("ioredis");

const [host, port] = (process.env.ADDR || "127.0.0.1:6379").split(":");
const client = new Redis({ host, port: Number(port) });

async function main() {
  // 30 calls a minute, 15 more at once.
  const [limited, , remaining, retryAfter] = await client.call("CL.THROTTLE", "user:42", 15, 30, 60, 1);
  console.log(limited ? `try again in ${retryAfter} s` : `allowed, ${remaining} left`);
  client.disconnect();
}

main().catch((err) => {
  console.error(err);
  process.exit(1);
});
