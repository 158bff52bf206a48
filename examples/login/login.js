// A login that counts wrong passwords. The fifth within 15 minutes blocks the account's logins for an hour, also those with the right
// password. A right password forgives the wrong ones before it.
//
//   npm install --no-save --prefix examples ioredis
//   go -C examples run ./try node login/login.js ann secret
//
// A celld of your own needs a policy: CL.POLICY SET login 5/15m,algo=log,block=1h,block-at=full
const Redis = require("ioredis");

const limiter = new Redis(process.env.RATE_LIMITER || "redis://127.0.0.1:6379", { maxRetriesPerRequest: 0 });
limiter.on("error", () => {}); // call reports errors

// login says whether the user is let in, and if not, why.
async function login(user, password) {
  const key = "login:" + user;
  // Each attempt takes before the password is looked at, so guesses sent at once count, too.
  const [limited, , remaining, retryMs] = await limiter.call("CL.TAKE", key, "@login");
  if (limited) return `blocked; try again in ${Math.floor(retryMs / 1000)} s`;
  if (!right(user, password)) return `wrong; ${remaining} more`; // after 0 more the block lasts
  await limiter.call("CL.RESET", key); // ends the block as well, if this was the fifth
  return "welcome";
}

// right stands for the look at the password.
function right(user, password) {
  return password === "secret";
}

login(...process.argv.slice(2))
  .then((answer) => console.log(answer))
  .catch((error) => {
    console.error(error.message);
    process.exitCode = 1;
  })
  .finally(() => limiter.disconnect());
