"""Workers for jobs of which three may run at once and five start in a second, however many workers there are. A job that
outlives its worker makes room for another after ten seconds.

pip install redis
go -C examples run ./try python3 jobs/jobs.py http://127.0.0.1:8000/a http://127.0.0.1:8000/b
"""

import contextlib
import os
import sys
import threading
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

KEY = "jobs:reports"
RUNNING = "3/10s,algo=conc"  # a lease that is not renewed ends after 10 seconds
STARTS = "5/1s"

# A reply may take the minute that a job waits for. No retries: a call whose reply was lost may have got a lease. The pool
# has a connection for each call that waits.
limiter = redis.Redis.from_url(
    os.environ.get("RATE_LIMITER", "redis://127.0.0.1:6379"), socket_timeout=70, retry=Retry(NoBackoff(), 0)
)


@contextlib.contextmanager
def place():
    """Waits until a job may start, and keeps its place until the job is done. lost() says that the place is another's."""
    limited = True
    while limited:  # it takes from both limits or from neither
        limited, *_, lease = limiter.execute_command("CL.TAKE", KEY, RUNNING, STARTS, "WAIT", 60_000)
    done, lost = threading.Event(), threading.Event()

    def renew():
        while not done.wait(3):
            try:
                if limiter.execute_command("CL.RENEW", KEY, lease, 10_000):
                    continue
            except redis.RedisError:
                pass
            lost.set()
            return

    threading.Thread(target=renew, daemon=True).start()
    try:
        yield lost
    finally:
        done.set()
        limiter.execute_command("CL.RELEASE", KEY, lease)


def do(job):
    with place() as lost:
        with urllib.request.urlopen(job, data=b"") as response:  # a job of several steps looks at lost.is_set() between them
            result = response.read().decode()
        print(job, "lost its place" if lost.is_set() else result, flush=True)


if __name__ == "__main__":
    with ThreadPoolExecutor(4) as workers:
        for done in workers.map(do, sys.argv[1:]):
            pass  # raises what a worker has raised
