package envoy

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"celld/resp"
	"celld/resp/config"
	"celld/resp/engine"
)

// ratelimitOf reads variables, after these flags, and returns the settings that were set, as name=value in the order of the settings.
func ratelimitOf(t *testing.T, program, variables string, flagsBefore ...string) (settings, warnings []string, wrong error) {
	t.Helper()
	before := os.Environ()
	os.Clearenv()
	defer func() {
		os.Clearenv()
		for _, entry := range before {
			name, value, _ := strings.Cut(entry, "=")
			os.Setenv(name, value)
		}
	}()
	for _, entry := range strings.Fields(variables) {
		name, value, _ := strings.Cut(entry, "=")
		os.Setenv(name, value)
	}
	cfg, given, e := resp.Settings(engine.Wing(), Wing()), map[string]bool{}, config.Environment{Program: program}
	set := func(setting, from, value string) {
		if err := cfg.Setting(setting).Value.Set(value); err != nil {
			e.Fail(fmt.Errorf("%s %q: %w", from, value, err))
		}
		given[setting] = true
	}
	e.Given = func(setting string) bool { return given[setting] }
	e.Set = func(setting, from, value string) {
		if !given[setting] {
			set(setting, "environment variable "+from, value)
		}
	}
	e.Fail = func(err error) { wrong = errors.Join(wrong, err) }
	for i := 0; i < len(flagsBefore); i += 2 {
		set(strings.TrimPrefix(flagsBefore[i], "--"), "flag", flagsBefore[i+1])
	}
	warnings = ratelimitVariables(e)
	for _, s := range cfg.Settings() {
		if given[s.Name] {
			settings = append(settings, s.Name+"="+s.Value.String())
		}
	}
	return settings, warnings, wrong
}

func TestRatelimitVariables(t *testing.T) {
	usual := []string{"envoy-bind=0.0.0.0:8081", "envoy-http-bind=0.0.0.0:8080", "envoy-config=/data/config"}
	for variables, want := range map[string]string{ // in place of the usual, or beside them
		"":                                             "",
		"RUNTIME_SUBDIRECTORY=ratelimit":               "envoy-config=/data/ratelimit/config",
		"RUNTIME_APPDIRECTORY=limits":                  "envoy-config=/data/limits",
		"GRPC_HOST=127.0.0.1 GRPC_PORT=9":              "envoy-bind=127.0.0.1:9",
		"GRPC_HOST=:: HOST=::1 PORT=7":                 "envoy-bind=[::]:8081 envoy-http-bind=[::1]:7",
		"GRPC_UDS=/run/x.sock GRPC_PORT=9":             "envoy-bind=unix:///run/x.sock",
		"PROMETHEUS_ADDR=:1":                           "",
		"USE_PROMETHEUS=true":                          "envoy-metrics-bind=0.0.0.0:9090",
		"USE_PROMETHEUS=1 PROMETHEUS_ADDR=127.0.0.1:1": "envoy-metrics-bind=127.0.0.1:1",
		"GRPC_MAX_CONNECTION_AGE=1h30m GRPC_MAX_CONNECTION_AGE_GRACE=10s": "envoy-max-connection-age=1h30m0s envoy-max-connection-age-grace=10s",
		"NEAR_LIMIT_RATIO=0.5":                         "envoy-near-limit=0.5",
		"MERGE_DOMAIN_CONFIG=true":                     "envoy-merge-domains=yes",
		"SHADOW_MODE=t":                                "envoy-shadow=yes",
		"SHADOW_MODE=false QUOTA_MODE=":                "",
		"QUOTA_MODE=True":                              "envoy-quota=yes",
		"RESPONSE_DYNAMIC_METADATA=true":               "envoy-dynamic-metadata=yes",
		"HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED=true": "envoy-health-needs-domain=yes",
		"STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT=true": "envoy-all-or-none=yes",
		"LIMIT_LIMIT_HEADER=a":                         "",
		"LIMIT_RESPONSE_HEADERS_ENABLED=true":          "envoy-headers=RateLimit-Limit RateLimit-Remaining RateLimit-Reset",
		"LIMIT_RESPONSE_HEADERS_ENABLED=true LIMIT_LIMIT_HEADER=a LIMIT_REMAINING_HEADER=b LIMIT_RESET_HEADER=c": "envoy-headers=a b c",
		"LOG_LEVEL=trace":         "loglevel=debug",
		"LOG_LEVEL=INFO":          "loglevel=notice",
		"LOG_LEVEL=error":         "loglevel=warning",
		"LOG_FORMAT=json":         "log-format=json",
		"LOG_FORMAT=text":         "log-format=text",
		"GRPC_SERVER_TLS_CERT=/c": "",
		"GRPC_SERVER_USE_TLS=true GRPC_SERVER_TLS_CERT=/c GRPC_SERVER_TLS_KEY=/k": "" +
			"tls-cert-file=/c tls-key-file=/k tls-auth-clients=no envoy-tls=yes",
		"GRPC_SERVER_USE_TLS=true GRPC_CLIENT_TLS_CACERT=/ca GRPC_CLIENT_TLS_SAN=san": "" +
			"tls-ca-cert-file=/ca tls-auth-clients=yes envoy-tls=yes envoy-tls-client-san=san",

		"REDIS_URL=/run/redis.sock":                      "store=unix:///run/redis.sock",
		"REDIS_URL=/run/redis.sock REDIS_TLS=true":       "store=unix:///run/redis.sock",
		"REDIS_SOCKET_TYPE=tcp REDIS_URL=redis:6379":     "store=redis://redis:6379",
		"REDIS_URL=redis://redis:6379":                   "store=redis://redis:6379",
		"REDIS_URL=rediss://redis:6379":                  "store=rediss://redis:6379",
		"REDIS_SOCKET_TYPE=tcp REDIS_URL=localhost:6379": "port=0 store=redis://localhost:6379",
		"REDIS_SOCKET_TYPE=tcp REDIS_URL=127.0.0.1:6380": "store=redis://127.0.0.1:6380",
		"REDIS_SOCKET_TYPE=tcp REDIS_URL=h:1 REDIS_TLS=1 REDIS_TLS_CACERT=/ca REDIS_TLS_CLIENT_CERT=/c REDIS_TLS_CLIENT_KEY=/k": "" +
			"store=rediss://h:1 store-tls-cert-file=/c store-tls-key-file=/k store-tls-ca-cert-file=/ca",
		"REDIS_SOCKET_TYPE=tcp REDIS_URL=h:1 REDIS_AUTH=p CACHE_KEY_PREFIX=x:": "" +
			"store=redis://h:1 store-password=(secret) store-prefix=x:",
		"REDIS_SOCKET_TYPE=tcp REDIS_URL=h:1 REDIS_AUTH=u:p:q": "" +
			"store=redis://h:1 store-username=u store-password=(secret)",
		"REDIS_SOCKET_TYPE=tcp REDIS_TYPE=cluster REDIS_URL=h:1,i:2":                        "store=redis://h:1,i:2",
		"REDIS_SOCKET_TYPE=tcp REDIS_TYPE=CLUSTER REDIS_URL=redis://h:1,redis://i:2":        "store=redis://h:1,i:2",
		"REDIS_SOCKET_TYPE=tcp REDIS_TYPE=SENTINEL REDIS_URL=m,h:1,i:2":                     "store=redis://h:1,i:2?master=m",
		"REDIS_SOCKET_TYPE=tcp REDIS_TYPE=SENTINEL REDIS_URL=m,h:1 REDIS_SENTINEL_AUTH=a&b": "store=redis://h:1?master=m",
	} {
		settings, warnings, wrong := ratelimitOf(t, "celld", "RUNTIME_ROOT=/data "+variables)
		all := slices.Clone(usual)
		for _, setting := range splitSettings(want) {
			name, _, _ := strings.Cut(setting, "=")
			all = slices.DeleteFunc(all, func(s string) bool { return strings.HasPrefix(s, name+"=") })
			all = append(all, setting)
		}
		slices.Sort(all)
		slices.Sort(settings)
		if wrong != nil || len(warnings) > 0 || !slices.Equal(settings, all) {
			t.Errorf("%s\n got %q, %v, %v\nwant %q", variables, settings, warnings, wrong, all)
		}
	}
}

// Envoy Gateway and AI Gateway tell the limits by xDS, and not in files.
func TestRatelimitByXDS(t *testing.T) {
	for variables, want := range map[string]string{
		"": "envoy-xds=localhost:18000 envoy-xds-node-id=default",
		"CONFIG_GRPC_XDS_SERVER_URL=dns:///gateway:18001 CONFIG_GRPC_XDS_NODE_ID=n CONFIG_GRPC_XDS_SERVER_TLS_SAN=unused": "" +
			"envoy-xds=gateway:18001 envoy-xds-node-id=n",
		"FORCE_START_WITHOUT_INITIAL_CONFIG=true": "envoy-xds=localhost:18000 envoy-xds-node-id=default envoy-start-empty=yes",
		"CONFIG_GRPC_XDS_NODE_METADATA=a=b,c=d CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS=a:b XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES=5000": "" +
			"envoy-xds=localhost:18000 envoy-xds-node-id=default envoy-xds-node-metadata=a=b,c=d envoy-xds-headers=(secret) envoy-xds-max-message=5000",
		"CONFIG_GRPC_XDS_SERVER_USE_TLS=true CONFIG_GRPC_XDS_CLIENT_TLS_CERT=/c CONFIG_GRPC_XDS_CLIENT_TLS_KEY=/k " +
			"CONFIG_GRPC_XDS_SERVER_TLS_CACERT=/a CONFIG_GRPC_XDS_SERVER_TLS_SAN=s": "" +
			"envoy-xds=localhost:18000 envoy-xds-node-id=default " +
			"envoy-xds-tls=yes envoy-xds-tls-cert-file=/c envoy-xds-tls-key-file=/k envoy-xds-tls-ca-cert-file=/a envoy-xds-tls-san=s",
	} {
		settings, warnings, wrong := ratelimitOf(t, "ratelimit", "CONFIG_TYPE=GRPC_XDS_SOTW "+variables)
		want = "envoy-bind=0.0.0.0:8081 envoy-http-bind=0.0.0.0:8080 " + want
		if got := strings.Join(settings, " "); wrong != nil || len(warnings) > 0 || !sameWords(got, want) {
			t.Errorf("%s\n got %s, %v, %v\nwant %s", variables, got, warnings, wrong, want)
		}
	}
}

// sameWords compares the words of two lines, in any order.
func sameWords(a, b string) bool {
	x, y := strings.Fields(a), strings.Fields(b)
	slices.Sort(x)
	slices.Sort(y)
	return slices.Equal(x, y)
}

// splitSettings splits name=value name=value. A value may have blanks.
func splitSettings(text string) (list []string) {
	for _, word := range strings.Fields(text) {
		if strings.Contains(word, "=") {
			list = append(list, word)
		} else {
			list[len(list)-1] += " " + word
		}
	}
	return list
}

func TestSentinelOptions(t *testing.T) {
	for auth, want := range map[string]string{"": "master=m", "a&b": "master=m&sentinel-password=a%26b",
		"u:p:q": "master=m&sentinel-password=p%3Aq&sentinel-username=u"} {
		if got := sentinelOptions("m", auth); got != want {
			t.Errorf("%s: got %s, want %s", auth, got, want)
		}
	}
}

func TestRatelimitMistakes(t *testing.T) {
	for variables, want := range map[string]string{
		"SHADOW_MODE=yes":            "environment variable SHADOW_MODE: expected true or false, not 'yes'",
		"NEAR_LIMIT_RATIO=2":         `environment variable NEAR_LIMIT_RATIO "2": argument must be from 0 to 1, such as 0.8`,
		"GRPC_PORT=x":                `environment variable GRPC_HOST and GRPC_PORT "0.0.0.0:x": argument must be host:port, such as`,
		"GRPC_UDS=x":                 `environment variable GRPC_UDS "unix://x": argument must be host:port`,
		"PORT=-1":                    `environment variable HOST and PORT "0.0.0.0:-1": `,
		"LOG_LEVEL=loud":             "environment variable LOG_LEVEL: expected debug, info, warn or error, not 'loud'",
		"BACKEND_TYPE=memcache":      "environment variable BACKEND_TYPE: celld keeps counts in itself or on a Redis, not on 'memcache'; leave it out",
		"CONFIG_TYPE=GRPC_XDS_DELTA": "environment variable CONFIG_TYPE: expected FILE or GRPC_XDS_SOTW, not 'GRPC_XDS_DELTA'",
		"CONFIG_TYPE=GRPC_XDS_SOTW CONFIG_GRPC_XDS_SERVER_URL=x": `environment variable CONFIG_GRPC_XDS_SERVER_URL "x": ` +
			"argument must be host:port",
		"CONFIG_TYPE=GRPC_XDS_SOTW CONFIG_GRPC_XDS_NODE_METADATA=a": `environment variable CONFIG_GRPC_XDS_NODE_METADATA "a": ` +
			"argument must be pairs such as a=b,c=d",
		"REDIS_URL=h REDIS_TYPE=x":                 "environment variable REDIS_TYPE: expected SINGLE, CLUSTER or SENTINEL, not 'X'",
		"USE_PROMETHEUS=true PROMETHEUS_ADDR=9090": `environment variable PROMETHEUS_ADDR "0.0.0.0:": `,
	} {
		_, _, wrong := ratelimitOf(t, "celld", "RUNTIME_ROOT=/data "+variables)
		if wrong == nil || !strings.HasPrefix(wrong.Error(), want) {
			t.Errorf("%s: got %v, want %s", variables, wrong, want)
		}
	}
	_, warnings, wrong := ratelimitOf(t, "ratelimit", "USE_STATSD=true USE_DOG_STATSD=true REDIS_PERSECOND=true TRACING_ENABLED=true "+
		"REDIS_TLS_SKIP_HOSTNAME_VERIFICATION=true REDIS_URL=rediss://h:1")
	if len(warnings) != 5 || wrong != nil {
		t.Errorf("warned of %q, %v", warnings, wrong)
	}
	t.Setenv("REDIS_TLS_SKIP_HOSTNAME_VERIFICATION", "true")
	for address, want := range map[string]string{"rediss://h:1": "rediss://h:1?server-name=*", "redis://h:1": "redis://h:1"} {
		if got, ok := (ratelimit{}).engineAt(address); got != want || !ok {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
}

// TestRatelimitHolds: the variables are common names, so they count only where it is clear whose they are. What celld has goes first.
func TestRatelimitHolds(t *testing.T) {
	const variables = "PORT=1 REDIS_URL=redis://h SHADOW_MODE=x LOG_LEVEL=debug"
	if settings, _, wrong := ratelimitOf(t, "/usr/bin/celld", variables); len(settings) > 0 || wrong != nil {
		t.Errorf("celld sets %q, %v", settings, wrong)
	}
	settings, _, wrong := ratelimitOf(t, "/bin/ratelimit", "")
	if want := "envoy-bind=0.0.0.0:8081 envoy-http-bind=0.0.0.0:8080 envoy-config=/srv/runtime_data/current/config"; wrong != nil ||
		strings.Join(settings, " ") != want {
		t.Errorf("/bin/ratelimit sets %q, %v", settings, wrong)
	}
	settings, _, wrong = ratelimitOf(t, "ratelimit", "PORT=x REDIS_URL=redis://h LOG_LEVEL=debug REDIS_AUTH=p",
		"--envoy-http-bind", "127.0.0.1:2", "--store", "redis://i", "--loglevel", "warning")
	if got := strings.Join(settings, " "); wrong != nil || !strings.Contains(got, "envoy-http-bind=127.0.0.1:2") ||
		!strings.Contains(got, "store=redis://i") || strings.Contains(got, "password") || !strings.Contains(got, "loglevel=warning") {
		t.Errorf("with flags: %q, %v", got, wrong)
	}
}
