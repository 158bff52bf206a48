"""slowapi on an app of FastAPI."""

import time

from fastapi import FastAPI, Request, Response
from fastapi.testclient import TestClient
from slowapi import Limiter, _rate_limit_exceeded_handler
from slowapi.errors import RateLimitExceeded
from slowapi.middleware import SlowAPIMiddleware

from facts import LIMIT, URL, at_once, decide, end_windows, keys, seconds, value

for strategy in ("fixed-window", "sliding-window-counter"):
    limiter = Limiter(
        key_func=lambda request: request.headers["X-User"],
        application_limits=["1000/day"],
        storage_uri=URL,
        strategy=strategy,
        headers_enabled=True,
        key_prefix=strategy,
    )
    app = FastAPI()
    app.state.limiter = limiter
    app.add_exception_handler(RateLimitExceeded, _rate_limit_exceeded_handler)
    app.add_middleware(SlowAPIMiddleware)

    @app.get("/three")
    @limiter.limit("3/hour")
    async def three(request: Request, response: Response):
        return "three"

    @app.get("/costly")
    @limiter.limit("10/hour", cost=lambda request: int(request.query_params["cost"]))
    def costly(request: Request, response: Response):
        return "costly"

    shared = limiter.shared_limit("2/hour", scope="shared")

    @app.get("/one")
    @shared
    def one(request: Request, response: Response):
        return "one"

    @app.get("/other")
    @shared
    def other(request: Request, response: Response):
        return "other"

    @app.get("/many")
    @limiter.limit(f"{LIMIT}/hour")
    def many(request: Request, response: Response):
        return "many"

    client = TestClient(app)

    def get(path, user="a"):
        reply = client.get(path, headers={"X-User": user})
        assert reply.status_code in (200, 429), reply.text
        get.headers = reply.headers
        return reply.status_code == 200

    for call in range(5):
        decide(strategy, get("/three"))
        value(f"{strategy}, call {call}", [get.headers["X-RateLimit-Limit"], get.headers["X-RateLimit-Remaining"]])
        seconds(f"{strategy}, call {call}, reset", float(get.headers["X-RateLimit-Reset"]) - time.time())
        seconds(f"{strategy}, call {call}, retry", int(get.headers["Retry-After"]))
    decide(strategy + ", another", *[get("/three", "b") for _ in range(4)])
    decide(strategy + ", by cost", *[get(f"/costly?cost={n}") for n in (7, 2, 1, 1)])
    decide(strategy + ", shared", get("/one"), get("/other"), get("/one"), get("/other"))
    keys(strategy)
    end_windows()
    decide(strategy + ", next window", *[get("/three") for _ in range(4)])
    limiter.reset()
    keys(strategy + ", reset")
    decide(strategy + ", reset", *[get("/three") for _ in range(4)])
    at_once(strategy, lambda: get("/many", "many"))
    limiter.reset()
