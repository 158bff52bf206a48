"""A budget for a language model: of requests and tokens a minute, and of requests in flight. Before a request it takes all
three, with as many tokens as the request may cost at most; afterwards it gives back what was not used. A worker that dies in
between costs nothing in the end: after two minutes all that it took flows back. The same request, sent again under its
name, takes nothing more.

pip install redis
go -C examples run ./try python3 tokens/tokens.py http://127.0.0.1:8000/model request-17 "Why is the sky blue?"

A celld of your own needs a policy: CL.POLICY SET llm 600/1m 100000/1m,name=tokens 20/2m,algo=conc
"""

import json
import os
import sys
import time
import urllib.error
import urllib.request

import redis

KEY = "llm:research"  # a team's
ANSWER = 1000  # tokens that the model may answer with
LONGEST = 60  # seconds of a request
LEASE = 120  # seconds, so that it does not end before the request does

# A reply may take the minute that a call waits for. The client may repeat a call: with an ID that does no harm.
limiter = redis.Redis.from_url(os.environ.get("RATE_LIMITER", "redis://127.0.0.1:6379"), socket_timeout=70)


def ask(model, name, prompt):
    """Sends a request when the budget allows it, and returns how many tokens it has used."""
    most = len(prompt.encode()) + ANSWER  # a byte is a token at most
    limited, limit, remaining, retry_ms, reset_ms, granted, wait, lease = limiter.execute_command(
        "CL.TAKE", KEY, "@llm", "COST", most, "OF", "tokens", "WAIT", 60_000, "LEASE", LEASE * 1000, "ID", name
    )
    if limited:
        sys.exit(f"over budget; try again in {retry_ms} ms")  # -1: it costs more than the whole budget
    used = most  # nobody knows what an answer costs that breaks off
    try:
        used = complete(model, prompt)
    except urllib.error.URLError as error:  # the model is not there, or refuses
        used = 0
        sys.exit(f"the model does not accept the request: {error}")
    finally:
        charge(lease, used)
    return used


def charge(lease, used):
    """Charges the tokens. A lease that has ended has given back all that it held, so these are taken once more."""
    if not limiter.execute_command("CL.SETTLE", KEY, lease, used, "OF", "tokens"):
        limiter.execute_command("CL.TAKE", KEY, "@llm", "COST", 0, "COST", used, "OF", "tokens", "FORCE")


def complete(model, prompt):
    """Stands for the model's client. urllib's timeout is for each read: an answer that comes in pieces needs an end, too."""
    end = time.monotonic() + LONGEST
    answer = b""
    with urllib.request.urlopen(model, data=prompt.encode(), timeout=LONGEST) as response:
        while piece := response.read1():
            answer += piece
            if time.monotonic() > end:
                raise TimeoutError(f"the answer takes longer than {LONGEST} seconds")
    return json.loads(answer)["usage"]["total_tokens"]


if __name__ == "__main__":
    print("used", ask(*sys.argv[1:]))
