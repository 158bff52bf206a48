"""A login that counts wrong passwords. The fifth within 15 minutes blocks the account's logins for an hour, also those with the right
password. A right password forgives the wrong ones before it.

pip install redis
go -C examples run ./try python3 login/login.py ann secret

A celld of your own needs a policy: CL.POLICY SET login 5/15m,algo=log,block=1h,block-at=full
"""

import os
import sys

import redis

limiter = redis.Redis.from_url(os.environ.get("RATE_LIMITER", "redis://127.0.0.1:6379"))


def login(user, password):
    """Says whether the user is let in, and if not, why."""
    key = "login:" + user
    # Each attempt takes before the password is looked at, so guesses sent at once count, too.
    limited, limit, remaining, retry_ms, reset_ms, granted, wait = limiter.execute_command("CL.TAKE", key, "@login")
    if limited:
        return f"blocked; try again in {retry_ms // 1000} s"
    if not right(user, password):
        return f"wrong; {remaining} more"  # after 0 more the block lasts
    limiter.execute_command("CL.RESET", key)  # ends the block as well, if this was the fifth
    return "welcome"


def right(user, password):
    """Stands for the look at the password."""
    return password == "secret"


if __name__ == "__main__":
    print(login(*sys.argv[1:]))
