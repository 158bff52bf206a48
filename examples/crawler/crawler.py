"""A polite crawler: it and all others that run ask each host for two pages a second at most, evenly, first come first served.

pip install redis
go -C examples run ./try python3 crawler/crawler.py http://127.0.0.1:8000/a http://127.0.0.1:8000/b
"""

import os
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

# A reply may take the minute that turn waits for. No retries: a call that asks again is at the end of the queue. The pool has a
# connection for each call that waits.
limiter = redis.Redis.from_url(
    os.environ.get("RATE_LIMITER", "redis://127.0.0.1:6379"), socket_timeout=70, retry=Retry(NoBackoff(), 0)
)


def turn(host):
    """Returns when the host may be asked."""
    while True:
        limited, limit, remaining, retry_ms, *_ = limiter.execute_command("CL.TAKE", f"host:{host}", "2/1s,burst=1", "WAIT", 60_000)
        if not limited:
            return
        if retry_ms < 0:
            raise PermissionError(f"{host} is not to be crawled")  # a rule denies it
        time.sleep(retry_ms / 1000)  # the queue is longer than a minute


def fetch(page):
    turn(urlsplit(page).netloc)
    with urllib.request.urlopen(page) as response:
        print(response.status, page, flush=True)


if __name__ == "__main__":
    with ThreadPoolExecutor(4) as workers:
        for done in workers.map(fetch, sys.argv[1:]):
            pass  # raises what a worker has raised: without a limiter it does not crawl
