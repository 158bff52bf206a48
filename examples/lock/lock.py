"""A distributed lock: it adds 1 to a number that a server keeps, as often as you say, while others do the same.

The lock ends five seconds after it was taken, whether its holder knows or not: the holder may be paused, or its clock may
run slow. So the lock alone does not protect the number. Each holder gets an id that is higher than all before; it sends the
id along, and the server refuses a write with a lower id than it has seen. A server that cannot do this may see two
holders write at once. The lock also ends when celld loses its data: let it keep them on disk (--appendonly yes), and
it goes on after a restart.

pip install redis
go -C examples run ./try python3 lock/lock.py http://127.0.0.1:8000/number 10
"""

import contextlib
import os
import sys
import urllib.error
import urllib.request

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

KEY, LOCK = "lock:number", "1/5s,algo=conc"

# A reply may take the minute that a call waits for. No retries: a call whose reply was lost may have the lock, which then
# ends by itself.
limiter = redis.Redis.from_url(
    os.environ.get("RATE_LIMITER", "redis://127.0.0.1:6379"), socket_timeout=70, retry=Retry(NoBackoff(), 0)
)


@contextlib.contextmanager
def locked():
    """Holds the lock, and has its id."""
    limited, *_, id = limiter.execute_command("CL.TAKE", KEY, LOCK, "WAIT", 60_000)
    if limited:
        raise TimeoutError("no lock within a minute")
    try:
        yield id
    finally:
        limiter.execute_command("CL.RELEASE", KEY, id)  # 0, and does nothing, if the lock has ended or is another's


def add(number, id):
    with urllib.request.urlopen(number) as response:
        n = int(response.read()) + 1
    write = urllib.request.Request(number, str(n).encode(), {"Fencing-Token": str(id)}, method="PUT")
    try:
        urllib.request.urlopen(write).close()
    except urllib.error.HTTPError as e:
        if e.code != 409:
            raise
        sys.exit("another has had the lock since")
    print(n, flush=True)


if __name__ == "__main__":
    for _ in range(int(sys.argv[2])):
        with locked() as id:
            add(sys.argv[1], id)
