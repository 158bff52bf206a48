"""fastapi-redis-sdk: its limiter on an app of FastAPI, by INCREX where the server has it, and by its script."""

import asyncio
import os
import sys
import time

from facts import CALLERS, LIMIT, URL, db, decide, end_windows, facts, keys, seconds, value

os.environ.update(REDIS_URL=URL, REDIS_PREFIX="app")

from fastapi import Depends, FastAPI, Request  # noqa: E402
from fastapi.testclient import TestClient  # noqa: E402
from redis.asyncio import Redis  # noqa: E402
from redis_fastapi import FastAPIRedis, RateLimitBackend, rate_limit  # noqa: E402
from redis_fastapi.ratelimit_backend import _BackendCapabilities, probe_increx_support  # noqa: E402


def tell(name, result):
    """A result. Which of its two ways the library took is in backends, as the servers differ there."""
    decide(name, result.allowed)
    value(name, [result.limit, result.remaining, result.degraded])
    seconds(f"{name}, {result.remaining}, reset", result.reset_after)
    seconds(f"{name}, {result.remaining}, reset at", result.reset_at - time.time())
    if result.backend:
        backends.add(result.backend)


async def by_backend(name, has_increx):
    patience = 600  # seconds: redis-py has 10, which a busy machine misses with so many callers
    async with Redis.from_url(URL, socket_timeout=patience, socket_connect_timeout=patience) as client:
        if has_increx is None:
            has_increx = await probe_increx_support(client)
        limiter = RateLimitBackend(client, scope="s", capabilities=_BackendCapabilities(supports_increx=has_increx))
        tell(name + ", unused", await limiter.peek("a", limit=10, window=3600))
        for cost in (1, 3, 5, 2, 1, 1):
            tell(name, await limiter.hit("a", limit=10, window=3600, cost=cost))
        tell(name + ", full", await limiter.peek("a", limit=10, window=3600))
        tell(name + ", another", await limiter.hit("b", limit=1, window=60))
        tell(name + ", scope", await limiter.hit("a", limit=1, window=60, scope="other"))
        tell(name + ", too much", await limiter.hit("c", limit=10, window=60, cost=11))
        keys(name)
        value(name + ", reset", [await limiter.reset("a"), await limiter.reset("a")])
        tell(name + ", reset", await limiter.hit("a", limit=10, window=3600))
        end_windows()
        tell(name + ", next window", await limiter.hit("a", limit=1, window=3600))
        tell(name + ", next window", await limiter.hit("a", limit=1, window=3600))
        hits = [limiter.hit("many", limit=LIMIT, window=3600) for _ in range(CALLERS)]
        results = await asyncio.gather(*hits)
        if any(result.degraded for result in results):
            sys.exit(f"{name}: the server was not asked")
        facts["at_once"][name] = sum(result.allowed for result in results)
    db.flushall()


backends = set()
asyncio.run(by_backend("backend", None))
facts["backends"] = sorted(backends)
asyncio.run(by_backend("script", False))

app = FastAPI()
FastAPIRedis(app).lifespan().rate_limiting()


def user(request: Request) -> str:
    return request.headers["X-User"]


@app.get("/three", dependencies=[Depends(rate_limit(limit=3, window=3600, identifier=user))])
async def three():
    return "three"


@app.get("/costly", dependencies=[Depends(rate_limit("10/hour", identifier=user, cost=4, ietf_headers=True))])
def costly():
    return "costly"


with TestClient(app) as client:
    for path in ("/three", "/costly"):
        for name in ("a", "b"):
            for call in range(5):
                reply = client.get(path, headers={"X-User": name})
                assert reply.status_code in (200, 429), reply.text
                decide(path, reply.status_code == 200)
                for header, text in reply.headers.items():
                    if header in ("retry-after", "x-ratelimit-reset"):
                        left = float(text) - time.time() if header == "x-ratelimit-reset" else float(text)
                        seconds(f"{path} {name} {call} {header}", left)
                    elif header.startswith("x-ratelimit"):
                        value(f"{path} {header}", text)
                    elif header == "ratelimit":
                        value(f"{path} {header}", text.rsplit("=", 1)[0])
    keys("app")
