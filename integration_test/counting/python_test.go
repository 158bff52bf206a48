//go:build all

package counting

import (
	"encoding/json"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// facts is what each script of testdata prints. facts.py says what they are.
type facts struct {
	Decisions map[string]string
	Values    []any
	Times     map[string]float64 // seconds
	TTLs      map[string]float64 // milliseconds
	AtOnce    map[string]int     `json:"at_once"`
	Backends  []string
}

// python runs a script of testdata with the libraries that `make counting` installs.
func python(t *testing.T, script, port string) (got facts) {
	t.Helper()
	path := harness.CachePath(t, "counting/python/bin/python")
	if _, err := os.Stat(path); err != nil {
		celldtest.Missing(t, "not installed (make counting does it): %v", err)
	}
	text := harness.Script(t, nil, path, "-W", "ignore", script, port)
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatalf("%s: %v: %s", script, err, text)
	}
	return got
}

// sameTimes compares times. limits takes a key that expires after exactly two windows, in its first millisecond, for one whose window is
// over. So what it says of a sliding window may differ by a whole window.
func sameTimes(t *testing.T, celld, redisServer map[string]float64, near, hour float64) {
	t.Helper()
	if len(celld) == 0 || len(celld) != len(redisServer) {
		t.Errorf("times on celld %v, on redis-server %v", celld, redisServer)
	}
	for name, on := range celld {
		other, ok := redisServer[name]
		apart := math.Abs(on - other)
		if strings.Contains(name, "sliding") && apart > hour/2 {
			apart = math.Abs(apart - hour)
		}
		if !ok || apart > near {
			t.Errorf("%s: %v on celld, %v on redis-server (%v)", name, on, other, ok)
		}
	}
}

// TestPython runs what each library does on celld and on redis-server. Where windows end by the clock, the scripts set the library's clock,
// and where keys expire, they let them expire at once.
func TestPython(t *testing.T) {
	t.Parallel()
	web := func(strategies ...string) map[string]string { // of Flask-Limiter and slowapi, whose scripts are alike
		want := map[string]string{}
		for _, s := range strategies {
			want[s], want[s+", another"], want[s+", by cost"], want[s+", shared"] = "yyynn", "yyyn", "yyyn", "yynn"
			want[s+", next window"], want[s+", reset"] = "yyyn", "yyyn"
		}
		return want
	}
	for script, want := range map[string]map[string]string{
		"limits_storage.py": {
			"fixed": "yyynn", "fixed, tested": "nyn", "fixed, another": "yyn", "fixed, too much": "nn", "fixed, cleared": "y",
			"fixed, next window": "yyyn", "fixed, after reset": "y",
			"sliding": "yyyyyyyyyynn", "sliding, tested": "nyn", "sliding, another": "ynyn", "sliding, half": "yyyyynn",
			"sliding, half, by cost": "ny", "sliding, cleared": "yyyyyyyyyyn", "sliding, much later": "yn",
			"asyncio: fixed": "yyynnyy", "asyncio: sliding": "yyynnyy",
		},
		"flask_limiter_app.py": web("fixed-window", "sliding-window-counter"),
		"slowapi_app.py":       web("fixed-window", "sliding-window-counter"),
		"throttled_quota.py": { // its fixed window counts calls that it denies, too
			"fixed_window": "yyynnn", "fixed_window, nothing": "y", "fixed_window, another": "y", "fixed_window, too much": "n",
			"fixed_window, next window": "yynn", "fixed_window, much later": "yn", "asyncio: fixed_window": "yyynn",
			"sliding_window": "yyynyn", "sliding_window, nothing": "y", "sliding_window, another": "y", "sliding_window, too much": "n",
			"sliding_window, next window": "ynnn", "sliding_window, much later": "yn", "asyncio: sliding_window": "yyynn",
		},
		"fastapi_redis.py": {
			"backend": "yyynyn", "backend, unused": "y", "backend, full": "n", "backend, another": "y", "backend, scope": "y",
			"backend, too much": "n", "backend, reset": "y", "backend, next window": "yn",
			"script": "yyynyn", "script, unused": "y", "script, full": "n", "script, another": "y", "script, scope": "y",
			"script, too much": "n", "script, reset": "y", "script, next window": "yn",
			"/three": "yyynnyyynn", "/costly": "yynnnyynnn",
		},
		"django_ratelimit_app.py": {
			"view": "yyynn", "view, another": "yyyn", "unused": "y", "used": "yyyn",
			"view, the next day": "yyynn", "view, another, the next day": "yyyn", "unused, the next day": "y", "used, the next day": "yyyn",
			"cleared": "y",
		},
	} {
		t.Run(strings.TrimSuffix(script, ".py"), func(t *testing.T) {
			t.Parallel()
			celld, redisServer, near := servers(t, func(t *testing.T, port string) facts { return python(t, script, port) })
			for name, got := range map[string]facts{"celld": celld, "redis-server": redisServer} {
				if !reflect.DeepEqual(got.Decisions, want) {
					t.Errorf("%s decides\n %v, want\n %v", name, got.Decisions, want)
				}
				if len(got.AtOnce) == 0 {
					t.Errorf("%s: no calls at once", name)
				}
				for series, passed := range got.AtOnce {
					if passed != limit {
						t.Errorf("%s, %s: %d of %d callers at once passed, of a limit of %d", name, series, passed, callers, limit)
					}
				}
			}
			if len(celld.Values) == 0 || !reflect.DeepEqual(celld.Values, redisServer.Values) {
				t.Errorf("on celld\n %v, on redis-server\n %v", celld.Values, redisServer.Values)
			}
			sameTimes(t, celld.Times, redisServer.Times, near, 3600)
			sameTimes(t, celld.TTLs, redisServer.TTLs, near*1000, 3_600_000)
			for name, ms := range celld.TTLs {
				if ms <= 0 {
					t.Errorf("%s has no end", name)
				}
			}
			for name, left := range celld.Times {
				if left < -near || left > 25*3600 {
					t.Errorf("%s: %v seconds", name, left)
				}
			}
			// celld has INCREX, and Debian's redis-server has not.
			if script == "fastapi_redis.py" && !reflect.DeepEqual(celld.Backends, []string{"increx"}) {
				t.Errorf("on celld it limits by %v", celld.Backends)
			}
		})
	}
}
