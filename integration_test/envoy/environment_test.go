package envoy

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// runtime is a RUNTIME_ROOT with limits, and the variables of a celld on it, on ports of its own.
func runtime(t *testing.T, config string, env ...string) []string {
	t.Helper()
	root := t.TempDir()
	celldtest.WriteFile(t, config, mkdir(t, root, "ratelimit", "config"), "limits.yaml")
	return append([]string{"RUNTIME_ROOT=" + root, "RUNTIME_SUBDIRECTORY=ratelimit", "HOST=127.0.0.1", "PORT=" + harness.FreePort(t),
		"GRPC_HOST=127.0.0.1", "GRPC_PORT=" + harness.FreePort(t)}, env...)
}

// value is that of a variable, the last one's.
func value(env []string, name string) (text string) {
	for _, one := range env {
		if rest, found := strings.CutPrefix(one, name+"="); found {
			text = rest
		}
	}
	return text
}

// TestProgramName: the variables hold where the program is called ratelimit, and else only with one of RUNTIME_….
func TestProgramName(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "ratelimit")
	if err := os.Symlink(harness.Binary(t), program); err != nil {
		t.Fatal(err)
	}
	env := runtime(t, shop)
	root, rest := value(env, "RUNTIME_ROOT"), env[2:]
	// This leads out of the default root.
	app := append([]string{"RUNTIME_APPDIRECTORY=" + strings.Repeat("../", 20) + root + "/ratelimit/config"}, rest...)
	expect(t, dial(t, startOn(t, harness.Spec{Binary: program, Env: app}).grpc), "client=ann", firstOf2)
	s := harness.Spec{Env: append(app, "USE_STATSD=true", "LOG_LEVEL=loud")}.Start(t)
	if log := s.Log.String(); strings.Contains(log, "Envoy") || strings.Contains(log, "WARN") {
		t.Errorf("without RUNTIME_ROOT:\n%s", log)
	}
	for _, env := range [][]string{
		append([]string{"RUNTIME_ROOT=" + root + "/ratelimit"}, rest...),
		append([]string{"RUNTIME_ROOT=" + root, "RUNTIME_APPDIRECTORY=ratelimit/config"}, rest...),
		append([]string{"RUNTIME_SUBDIRECTORY=ratelimit", "RUNTIME_ROOT=" + root}, rest...),
	} {
		env = append(env, "GRPC_PORT="+harness.FreePort(t), "PORT="+harness.FreePort(t))
		expect(t, dial(t, startOn(t, harness.Spec{Env: env}).grpc), "client=ann", firstOf2)
	}
}

// TestVariables: what they set, and that flags and CELLD_… go before.
func TestVariables(t *testing.T) {
	t.Parallel()
	ca := celldtest.NewAuthority(t)
	cert, key := ca.Sign("server", serverCert())
	mine, myKey := ca.Sign("client", clientCert("envoy.mesh"))
	socket := harness.SocketDir(t) + "/grpc"
	elsewhere := value(runtime(t, shop), "RUNTIME_ROOT") + "/ratelimit"
	thrice := func(c ratelimit.RateLimitServiceClient) string {
		q := request("shop", "client=ann")
		q.HitsAddend = 3
		r, err := ask(c, q)
		if err == nil && len(r.ResponseHeadersToAdd) == 3 {
			return told(r, err) + " / " + r.ResponseHeadersToAdd[0].Key + " " + r.ResponseHeadersToAdd[2].Key
		}
		if err == nil && r.DynamicMetadata != nil {
			return told(r, err) + " / " + r.DynamicMetadata.Fields["domain"].GetStringValue()
		}
		return told(r, err)
	}
	const shadowed = "OK / OVER_LIMIT of 2 a YEAR, 0 left, ends"
	tls := []string{"GRPC_SERVER_USE_TLS=true", "GRPC_SERVER_TLS_CERT=" + cert, "GRPC_SERVER_TLS_KEY=" + key}
	mutual := append([]string{"GRPC_CLIENT_TLS_CACERT=" + ca.File}, tls...)
	for name, test := range map[string]struct {
		env, flags []string
		want       string // of a client without a certificate; with one where the name begins with mutual
	}{
		"nothing":        {nil, nil, overOf2},
		"shadow":         {[]string{"SHADOW_MODE=true"}, nil, shadowed},
		"shadow, CELLD_": {[]string{"SHADOW_MODE=true", "CELLD_ENVOY_SHADOW=no"}, nil, overOf2},
		"shadow, flag":   {[]string{"SHADOW_MODE=true"}, []string{"--envoy-shadow", "no"}, overOf2},
		"headers":        {[]string{"LIMIT_RESPONSE_HEADERS_ENABLED=1"}, nil, overOf2 + " / RateLimit-Limit RateLimit-Reset"},
		"headers' names": {[]string{"LIMIT_RESPONSE_HEADERS_ENABLED=true", "LIMIT_LIMIT_HEADER=X-L", "LIMIT_RESET_HEADER=X-R"}, nil,
			overOf2 + " / X-L X-R"},
		"metadata":        {[]string{"RESPONSE_DYNAMIC_METADATA=true"}, nil, overOf2 + " / shop"},
		"port":            {[]string{"GRPC_PORT=1"}, []string{"--envoy-bind", "127.0.0.1:0"}, overOf2},
		"unix":            {[]string{"GRPC_UDS=" + socket}, nil, overOf2},
		"tls":             {tls, nil, overOf2},
		"mutual tls":      {mutual, nil, overOf2},
		"mutual, san":     {append([]string{"GRPC_CLIENT_TLS_SAN=envoy.mesh"}, mutual...), nil, overOf2},
		"mutual, no san":  {append([]string{"GRPC_CLIENT_TLS_SAN=other.mesh"}, mutual...), nil, "code = Unavailable"},
		"tls, nobody":     {mutual, nil, "code = Unavailable"},
		"quota":           {[]string{"QUOTA_MODE=true"}, nil, overOf2},
		"all or none":     {[]string{"STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT=true"}, nil, overOf2},
		"empty is no":     {[]string{"SHADOW_MODE="}, nil, overOf2},
		"engine, flag":    {[]string{"REDIS_URL=/nosuch"}, []string{"--store", ""}, overOf2},
		"config, CELLD_":  {[]string{"RUNTIME_SUBDIRECTORY=nosuch", "CELLD_ENVOY_CONFIG=" + elsewhere}, nil, overOf2},
		"age and ratio":   {[]string{"GRPC_MAX_CONNECTION_AGE=1h", "GRPC_MAX_CONNECTION_AGE_GRACE=1m", "NEAR_LIMIT_RATIO=0.5"}, nil, overOf2},
		"what is ignored": {[]string{"LOCAL_CACHE_SIZE_IN_BYTES=1000", "REDIS_POOL_SIZE=9", "CACHE_KEY_PREFIX=x"}, nil, overOf2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startOn(t, harness.Spec{Env: runtime(t, shop, test.env...), Flags: test.flags})
			addr := s.grpc
			if name == "unix" {
				addr = "unix:" + socket
			}
			c := dial(t, addr)
			switch {
			case strings.HasPrefix(name, "mutual"):
				c = dial(t, addr, ca.Client(mine, myKey))
			case strings.HasPrefix(name, "tls"):
				c = dial(t, addr, ca.Client("", ""))
			}
			got := ""
			if strings.HasPrefix(test.want, "code") {
				_, err := c.ShouldRateLimit(t.Context(), request("shop", "client=ann"))
				got = fmt.Sprint(err)
			} else {
				got = thrice(c)
			}
			if got != test.want && !(strings.HasPrefix(test.want, "code") && strings.Contains(got, test.want)) {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// TestWarnings: what celld does not do is a line of the log, and what is counted where.
func TestWarnings(t *testing.T) {
	t.Parallel()
	port := harness.FreePort(t)
	s := startOn(t, harness.Spec{Env: runtime(t, shop, "USE_STATSD=true", "REDIS_PERSECOND=true", "TRACING_ENABLED=true",
		"USE_PROMETHEUS=true", "PROMETHEUS_ADDR=127.0.0.1:"+port, "LOG_LEVEL=debug")})
	s.Logs("USE_STATSD: celld sends no statsd", "REDIS_PERSECOND: limits a second", "TRACING_ENABLED: celld sends no traces")
	if got := harness.Dial(t, s.Addr).Do("CONFIG", "GET", "loglevel"); !strings.Contains(got, "debug") {
		t.Error(got)
	}
	_, _, page := harness.Get(s.Server, "http://127.0.0.1:"+port+"/metrics")
	if metric(page, "ratelimit_service_config_load_success") != "1" {
		t.Errorf("%s", page)
	}
}

// TestWrongVariables: each is one line, with exit code 2.
func TestWrongVariables(t *testing.T) {
	t.Parallel()
	env := runtime(t, shop)
	for _, test := range []struct{ env, says string }{
		{"GRPC_PORT=x", "environment variable GRPC_HOST and GRPC_PORT"},
		{"GRPC_PORT=70000", "environment variable GRPC_HOST and GRPC_PORT"},
		{"PORT=x", "environment variable HOST and PORT"},
		{"GRPC_UDS=relative", "environment variable GRPC_UDS"},
		{"SHADOW_MODE=maybe", "environment variable SHADOW_MODE: expected true or false, not 'maybe'"},
		{"USE_STATSD=maybe", "environment variable USE_STATSD: expected true or false, not 'maybe'"},
		{"LOG_LEVEL=loud", "environment variable LOG_LEVEL: expected debug, info, warn or error, not 'loud'"},
		{"LOG_FORMAT=xml", "environment variable LOG_FORMAT"},
		{"BACKEND_TYPE=memcache", "environment variable BACKEND_TYPE: celld keeps counts in itself or on a Redis, not on 'memcache'"},
		{"CONFIG_TYPE=GRPC_XDS_DELTA", "environment variable CONFIG_TYPE: expected FILE or GRPC_XDS_SOTW, not 'GRPC_XDS_DELTA'"},
		{"REDIS_URL=x:1 REDIS_TYPE=RING", "environment variable REDIS_TYPE: expected SINGLE, CLUSTER or SENTINEL, not 'RING'"},
		{"REDIS_URL=x:y REDIS_SOCKET_TYPE=tcp", "--store: address 1: the port must be a number"},
		{"NEAR_LIMIT_RATIO=2", "environment variable NEAR_LIMIT_RATIO"},
		{"GRPC_MAX_CONNECTION_AGE=forever", "environment variable GRPC_MAX_CONNECTION_AGE"},
		{"LIMIT_RESPONSE_HEADERS_ENABLED=true LIMIT_LIMIT_HEADER=a:b", "environment variable LIMIT_RESPONSE_HEADERS_ENABLED"},
		{"USE_PROMETHEUS=true PROMETHEUS_ADDR=9090", "environment variable PROMETHEUS_ADDR"},
		{"GRPC_SERVER_USE_TLS=true", "--envoy-tls needs --tls-cert-file and --tls-key-file"},
		{"RUNTIME_SUBDIRECTORY=nosuch", "--envoy-config: stat " + value(env, "RUNTIME_ROOT") + "/nosuch/config: no such file or directory"},
	} {
		_, stderr, code := harness.RunToEnd(t, append(env, strings.Fields(test.env)...), "--port", "0")
		if code != 2 || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, test.says) {
			t.Errorf("%s: code %d, %q; want %q", test.env, code, stderr, test.says)
		}
	}
}

// TestSharedLimit runs two processes on a Redis. They share a limit exactly, and it outlives them.
func TestSharedLimit(t *testing.T) {
	t.Parallel()
	for name, engine := range map[string]func() []string{
		"unix": func() []string {
			path := strings.TrimPrefix(celldtest.StartRedis(t), "unix:")
			return []string{"REDIS_SOCKET_TYPE=unix", "REDIS_URL=" + path}
		},
		"unix by default": func() []string {
			return []string{"REDIS_URL=" + strings.TrimPrefix(celldtest.StartRedis(t), "unix:")}
		},
		"tcp and a password": func() []string {
			port := harness.FreePort(t)
			celldtest.StartRedis(t, "--port", port, "--requirepass", "a:b")
			return []string{"REDIS_SOCKET_TYPE=tcp", "REDIS_URL=127.0.0.1:" + port, "REDIS_AUTH=default:a:b"}
		},
		"url": func() []string {
			port := harness.FreePort(t)
			celldtest.StartRedis(t, "--port", port, "--requirepass", "secret")
			return []string{"REDIS_SOCKET_TYPE=tcp", "REDIS_URL=redis://127.0.0.1:" + port, "REDIS_AUTH=secret"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			where := append(engine(), "CACHE_KEY_PREFIX=mine:", "CELLD_STORE_TIMEOUT=20s")
			const limit, callers, calls = 500, 20, 50
			var passed atomic.Int64
			var all sync.WaitGroup
			run := func(env []string, callers int) {
				s := startOn(t, harness.Spec{Env: env})
				for range callers {
					c := dial(t, s.grpc)
					all.Go(func() {
						for range calls {
							r, err := ask(c, request("a", "client=ann"))
							if err != nil {
								t.Error(err)
								return
							}
							if r.OverallCode == ratelimit.RateLimitResponse_OK {
								passed.Add(1)
							}
						}
					})
				}
			}
			run(runtime(t, of("a", limit), where...), callers/2)
			run(runtime(t, of("a", limit), where...), callers/2)
			all.Wait()
			if passed.Load() != limit {
				t.Errorf("%d passed, want %d", passed.Load(), limit)
			}
			run(runtime(t, of("a", limit+1), where...), 1)
			all.Wait()
			if passed.Load() != limit { // what was denied has counted
				t.Errorf("%d passed with a third", passed.Load())
			}
		})
	}
}
