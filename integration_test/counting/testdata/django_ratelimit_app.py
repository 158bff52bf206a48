"""django-ratelimit with the cache of django-redis. django-redis keeps integers as they are, not pickled, so they can be counted."""

import time
from unittest import mock

import django
from django.conf import settings

from facts import LIMIT, URL, at_once, db, decide, keys, seconds, value

settings.configure(
    SECRET_KEY="counting",
    ROOT_URLCONF=__name__,
    ALLOWED_HOSTS=["*"],
    CACHES={"default": {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": URL}},
    INSTALLED_APPS=["django_ratelimit"],
)
django.setup()

from django.core.cache import cache  # noqa: E402
from django.http import HttpResponse  # noqa: E402
from django.test import Client, RequestFactory  # noqa: E402
from django.urls import path  # noqa: E402
from django_ratelimit.core import get_usage, is_ratelimited  # noqa: E402
from django_ratelimit.decorators import ratelimit  # noqa: E402


@ratelimit(key="header:x-user", rate="3/d")
def three(request):
    return HttpResponse("three")


@ratelimit(key="header:x-user", rate=f"{LIMIT}/d")
def many(request):
    return HttpResponse("many")


urlpatterns = [path("three", three), path("many", many)]


def get(path, user="a"):
    status = Client().get(path, headers={"X-User": user}).status_code
    assert status in (200, 403), status
    return status == 200


def usage(name, user, increment):
    request = RequestFactory().get("/", headers={"X-User": user})
    got = get_usage(request, group="g", key="header:x-user", rate="3/d", increment=increment)
    value(name, [got["count"], got["limit"], got["should_limit"]])
    seconds(f"{name}, {got['count']}", got["time_left"])
    decide(name, not is_ratelimited(request, group="g", key="header:x-user", rate="3/d"))


NOW = int(time.time())
for name, moment in (("", NOW), (", the next day", NOW + 86_400)):
    with mock.patch("time.time", return_value=moment):  # a window ends by the clock, so the clock stands still here
        decide("view" + name, *[get("/three") for _ in range(5)])
        decide("view, another" + name, *[get("/three", "b") for _ in range(4)])
        usage("unused" + name, "a", False)
        for _ in range(4):
            usage("used" + name, "a", True)
        keys("django" + name)
with mock.patch("time.time", return_value=NOW):
    at_once("view", lambda: get("/many", "many"))
cache.clear()
value("cleared", db.dbsize())
with mock.patch("time.time", return_value=NOW):
    decide("cleared", get("/three"))

# The calls of the cache that a limiter may make besides.
cache.clear()
value("add", [cache.add("n", 5, 3600), cache.add("n", 6, 3600), cache.get("n"), cache.get_or_set("m", 7, 3600)])
value("incr", [cache.incr("n"), cache.incr("n", 4), cache.decr("n"), cache.incr("new", ignore_key_check=True)])
value("set", [cache.has_key("n"), cache.touch("n", 60), cache.set("n", 1, 60, nx=True), cache.set("n", 1, 60), cache.get("n")])
seconds("ttl", cache.ttl("n"))
seconds("pttl", cache.pttl("n") / 1000)
try:
    cache.incr("none")
except ValueError:
    value("incr of no key", "ValueError")
value("delete", [cache.delete("n"), cache.delete("n"), cache.delete_many(["m", "new"]), db.dbsize()])
