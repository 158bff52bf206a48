package envoy

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"celld/resp/config"
)

// ratelimit reads the environment variables of envoyproxy/ratelimit, so that its manifests start celld: those that its f2fb157 knows, with
// its defaults. They hold where RUNTIME_ROOT or RUNTIME_SUBDIRECTORY is set, or where the program is called ratelimit, as in manifests that
// name the command. Flags and CELLD_ variables go before them.
type ratelimit struct{ config.Environment }

// ratelimitName is the name of envoyproxy/ratelimit's program. Images have celld under it, too.
const ratelimitName = "ratelimit"

func isRatelimit(program string) bool { return filepath.Base(program) == ratelimitName }

// ratelimitVariables applies the variables. It returns lines about what celld does not do.
func ratelimitVariables(e config.Environment) (warnings []string) {
	r := ratelimit{e}
	if os.Getenv("RUNTIME_ROOT")+os.Getenv("RUNTIME_SUBDIRECTORY") == "" && !isRatelimit(e.Program) {
		return nil
	}
	r.config()
	if path := os.Getenv("GRPC_UDS"); path != "" {
		r.Set("envoy-bind", "GRPC_UDS", "unix://"+path)
	} else {
		r.Set("envoy-bind", "GRPC_HOST and GRPC_PORT", net.JoinHostPort(env("GRPC_HOST", "0.0.0.0"), env("GRPC_PORT", "8081")))
	}
	r.Set("envoy-http-bind", "HOST and PORT", net.JoinHostPort(env("HOST", "0.0.0.0"), env("PORT", "8080")))
	if r.yes("USE_PROMETHEUS") {
		host, port, _ := net.SplitHostPort(env("PROMETHEUS_ADDR", ":9090"))
		r.Set("envoy-metrics-bind", "PROMETHEUS_ADDR", net.JoinHostPort(cmp.Or(host, "0.0.0.0"), port))
	}
	r.copy(map[string]string{
		"GRPC_MAX_CONNECTION_AGE": "envoy-max-connection-age", "GRPC_MAX_CONNECTION_AGE_GRACE": "envoy-max-connection-age-grace",
		"NEAR_LIMIT_RATIO": "envoy-near-limit", "LOG_FORMAT": "log-format",
	})
	for variable, setting := range map[string]string{
		"MERGE_DOMAIN_CONFIG": "envoy-merge-domains", "SHADOW_MODE": "envoy-shadow", "QUOTA_MODE": "envoy-quota",
		"RESPONSE_DYNAMIC_METADATA": "envoy-dynamic-metadata", "HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED": "envoy-health-needs-domain",
		"STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT": "envoy-all-or-none", "FORCE_START_WITHOUT_INITIAL_CONFIG": "envoy-start-empty",
	} {
		if r.yes(variable) {
			r.Set(setting, variable, "yes")
		}
	}
	if r.yes("LIMIT_RESPONSE_HEADERS_ENABLED") {
		r.Set("envoy-headers", "LIMIT_RESPONSE_HEADERS_ENABLED", strings.Join([]string{env("LIMIT_LIMIT_HEADER", "RateLimit-Limit"),
			env("LIMIT_REMAINING_HEADER", "RateLimit-Remaining"), env("LIMIT_RESET_HEADER", "RateLimit-Reset")}, " "))
	}
	r.log()
	r.tls()
	r.redis()
	return r.warnings()
}

// config reads where the limits come from.
func (r ratelimit) config() {
	kind := env("CONFIG_TYPE", "FILE")
	if kind == "GRPC_XDS_SOTW" {
		r.xds()
		return
	}
	if kind != "FILE" {
		r.fail("environment variable CONFIG_TYPE: expected FILE or GRPC_XDS_SOTW, not '%.64s'", kind)
	}
	r.Set("envoy-config", "RUNTIME_ROOT", filepath.Join(env("RUNTIME_ROOT", "/srv/runtime_data/current"), os.Getenv("RUNTIME_SUBDIRECTORY"),
		env("RUNTIME_APPDIRECTORY", "config")))
}

// xds reads where a server tells the limits. What its pauses are does not matter.
func (r ratelimit) xds() {
	r.Set("envoy-xds", "CONFIG_GRPC_XDS_SERVER_URL", strings.TrimPrefix(env("CONFIG_GRPC_XDS_SERVER_URL", "localhost:18000"), "dns:///"))
	r.Set("envoy-xds-node-id", "CONFIG_GRPC_XDS_NODE_ID", env("CONFIG_GRPC_XDS_NODE_ID", "default"))
	r.copy(map[string]string{
		"CONFIG_GRPC_XDS_NODE_METADATA":             "envoy-xds-node-metadata",
		"CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS": "envoy-xds-headers", "XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES": "envoy-xds-max-message",
	})
	if r.yes("CONFIG_GRPC_XDS_SERVER_USE_TLS") {
		r.Set("envoy-xds-tls", "CONFIG_GRPC_XDS_SERVER_USE_TLS", "yes")
		r.copy(map[string]string{
			"CONFIG_GRPC_XDS_CLIENT_TLS_CERT": "envoy-xds-tls-cert-file", "CONFIG_GRPC_XDS_CLIENT_TLS_KEY": "envoy-xds-tls-key-file",
			"CONFIG_GRPC_XDS_SERVER_TLS_CACERT": "envoy-xds-tls-ca-cert-file", "CONFIG_GRPC_XDS_SERVER_TLS_SAN": "envoy-xds-tls-san",
		})
	}
}

// copy passes variables on that are set.
func (r ratelimit) copy(settings map[string]string) {
	for variable, setting := range settings {
		if value := os.Getenv(variable); value != "" {
			r.Set(setting, variable, value)
		}
	}
}

// env is a variable, or its default.
func env(variable, byDefault string) string { return cmp.Or(os.Getenv(variable), byDefault) }

func (r ratelimit) fail(format string, args ...any) {
	r.Fail(fmt.Errorf(format, args...))
}

// yes reads a variable that says yes or no.
func (r ratelimit) yes(variable string) bool {
	text := os.Getenv(variable)
	if text == "" {
		return false
	}
	yes, err := strconv.ParseBool(text)
	if err != nil {
		r.fail("environment variable %s: expected true or false, not '%.64s'", variable, text)
	}
	return yes
}

// log reads how much to log. celld has fewer levels.
func (r ratelimit) log() {
	switch level := strings.ToLower(os.Getenv("LOG_LEVEL")); level {
	case "":
	case "trace", "debug":
		r.Set("loglevel", "LOG_LEVEL", "debug")
	case "info":
		r.Set("loglevel", "LOG_LEVEL", "notice")
	case "warn", "warning", "error", "fatal", "panic":
		r.Set("loglevel", "LOG_LEVEL", "warning")
	default:
		r.fail("environment variable LOG_LEVEL: expected debug, info, warn or error, not '%.64s'", level)
	}
}

// tls reads the certificates.
func (r ratelimit) tls() {
	if !r.yes("GRPC_SERVER_USE_TLS") {
		return
	}
	r.Set("envoy-tls", "GRPC_SERVER_USE_TLS", "yes")
	clients := "no"
	r.copy(map[string]string{
		"GRPC_SERVER_TLS_CERT": "tls-cert-file", "GRPC_SERVER_TLS_KEY": "tls-key-file", "GRPC_CLIENT_TLS_CACERT": "tls-ca-cert-file",
		"GRPC_CLIENT_TLS_SAN": "envoy-tls-client-san",
	})
	if os.Getenv("GRPC_CLIENT_TLS_CACERT") != "" {
		clients = "yes"
	}
	r.Set("tls-auth-clients", "GRPC_CLIENT_TLS_CACERT", clients)
}

// redis reads where the counts are. Without REDIS_URL they are in celld.
func (r ratelimit) redis() {
	address := os.Getenv("REDIS_URL")
	switch backend := env("BACKEND_TYPE", "redis"); {
	case backend != "redis":
		r.fail("environment variable BACKEND_TYPE: celld keeps counts in itself or on a Redis, not on '%.64s'; leave it out", backend)
		return
	case address == "" || r.Given("store"):
		return
	}
	where, ok := r.engineAt(address)
	if !ok {
		return
	}
	r.Set("store", "REDIS_URL", where)
	if auth := os.Getenv("REDIS_AUTH"); auth != "" {
		user, password := userOf(auth)
		r.Set("store-password", "REDIS_AUTH", password)
		if user != "" {
			r.Set("store-username", "REDIS_AUTH", user)
		}
	}
	r.copy(map[string]string{
		"REDIS_TLS_CLIENT_CERT": "store-tls-cert-file", "REDIS_TLS_CLIENT_KEY": "store-tls-key-file",
		"REDIS_TLS_CACERT": "store-tls-ca-cert-file", "CACHE_KEY_PREFIX": "store-prefix",
	})
}

// engineAt is the URL of the engine at an address of envoyproxy/ratelimit.
func (r ratelimit) engineAt(address string) (where string, ok bool) {
	scheme, rest, hasScheme := strings.Cut(address, "://")
	if !hasScheme {
		scheme, rest = "redis", address
	}
	rest = strings.ReplaceAll(rest, ","+scheme+"://", ",") // each of several may have its own
	if r.yes("REDIS_TLS") {
		scheme = "rediss"
	}
	switch kind := strings.ToUpper(env("REDIS_TYPE", "SINGLE")); {
	case env("REDIS_SOCKET_TYPE", "unix") == "unix" && !hasScheme && kind == "SINGLE":
		scheme = "unix"
	case kind == "SENTINEL":
		master, sentinels, _ := strings.Cut(rest, ",")
		rest = sentinels + "?" + sentinelOptions(master, os.Getenv("REDIS_SENTINEL_AUTH"))
	case kind != "SINGLE" && kind != "CLUSTER":
		r.fail("environment variable REDIS_TYPE: expected SINGLE, CLUSTER or SENTINEL, not '%.64s'", kind)
		return "", false
	}
	if r.yes("REDIS_TLS_SKIP_HOSTNAME_VERIFICATION") && scheme == "rediss" {
		sign := "?"
		if strings.Contains(rest, "?") {
			sign = "&"
		}
		rest += sign + "server-name=*"
	}
	if host, port, _ := net.SplitHostPort(rest); port == "6379" && (host == "localhost" || host == "127.0.0.1") {
		r.Set("port", "REDIS_URL", "0") // its default is that Redis's
	}
	return scheme + "://" + rest, true
}

// userOf reads user:password, or a password alone.
func userOf(auth string) (user, password string) {
	user, password, both := strings.Cut(auth, ":")
	if !both {
		return "", auth
	}
	return user, password
}

// sentinelOptions are those of a URL with Sentinels.
func sentinelOptions(master, auth string) string {
	options := url.Values{"master": {master}}
	if auth != "" {
		user, password := userOf(auth)
		options.Set("sentinel-password", password)
		if user != "" {
			options.Set("sentinel-username", user)
		}
	}
	return options.Encode()
}

// warnings name what is asked for and not done. What has no effect on decisions is not named: pools, jitter, local caches.
func (r ratelimit) warnings() (lines []string) {
	for _, one := range []struct{ variable, instead string }{
		{"USE_STATSD", "celld sends no statsd: Prometheus may fetch its metrics (USE_PROMETHEUS=true, or --http-bind)"},
		{"USE_DOG_STATSD", "celld sends no statsd: Prometheus may fetch its metrics (USE_PROMETHEUS=true, or --http-bind)"},
		{"REDIS_TLS_SKIP_HOSTNAME_VERIFICATION", "who vouches for the Redis is checked, and its name is not: " +
			"anybody with a certificate of theirs can take its place"},
		{"REDIS_PERSECOND", "limits a second are kept where the others are"},
		{"TRACING_ENABLED", "celld sends no traces"},
	} {
		if r.yes(one.variable) {
			lines = append(lines, one.variable+": "+one.instead)
		}
	}
	return lines
}
