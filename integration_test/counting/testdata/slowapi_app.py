"""slowapi on an app of FastAPI."""

from fastapi import FastAPI, Request, Response
from fastapi.testclient import TestClient
from slowapi import Limiter, _rate_limit_exceeded_handler
from slowapi.errors import RateLimitExceeded
from slowapi.middleware import SlowAPIMiddleware

from facts import LIMIT, URL, play_web

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

    play_web(strategy, limiter, get)
