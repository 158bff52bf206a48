package config

import (
	"crypto/tls"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// envoyConfig are the settings of Envoy's rate limit service.
type envoyConfig struct {
	Bind              *Param[string]
	HTTPBind          *Param[string]
	MetricsBind       *Param[string]
	Config            *Param[string]
	TLS               *Param[bool]
	ClientSAN         *Param[string]
	MaxConnections    *Param[int64]
	MaxAge            *Param[time.Duration]
	MaxAgeGrace       *Param[time.Duration]
	AllOrNone         *Param[bool]
	MergeDomains      *Param[bool]
	Shadow            *Param[bool]
	Quota             *Param[bool]
	NearLimit         *Param[string]
	Headers           *Param[string]
	Metadata          *Param[bool]
	HealthNeedsDomain *Param[bool]
}

func (c *envoyConfig) rows() []Setting {
	const year = 365 * 24 * time.Hour
	return []Setting{
		{Name: "envoy-bind", Group: groupEnvoy, Value: in(&c.Bind, newText("", "address", checkEnvoyBind)), Help: "address to serve Envoy's rate limit service on by gRPC: host:port, or unix:///path; empty: none"},
		{Name: "envoy-http-bind", Group: groupEnvoy, Value: in(&c.HTTPBind, newText("", "host:port", checkHostPort)), Help: "address to serve it on by HTTP: /json and /healthcheck; empty: none"},
		{Name: "envoy-metrics-bind", Group: groupEnvoy, Value: in(&c.MetricsBind, newText("", "host:port", checkHostPort)), Help: "address to serve only metrics on, at any path and without a token; empty: none"},
		{Name: "envoy-config", Group: groupEnvoy, Value: in(&c.Config, newText("", "path", checkPath)), Help: "its limits, in the YAML of envoyproxy/ratelimit: a file, or a directory of such files; celld reads them again when they change"},
		{Name: "envoy-tls", Group: groupEnvoy, Value: in(&c.TLS, newYesNo(false)), Help: "serve gRPC by TLS only, with --tls-cert-file and the other settings of TLS"},
		{Name: "envoy-tls-client-san", Group: groupEnvoy, Value: in(&c.ClientSAN, newText("", "name", nil)), Help: "name that the certificate of a client must have; empty: any"},
		{Name: "envoy-max-connections", Group: groupEnvoy, Value: in(&c.MaxConnections, newInt(1000, 1, 1<<20, "n")), Help: "most connections at once, of gRPC and of HTTP each; one more waits"},
		{Name: "envoy-max-connection-age", Group: groupEnvoy, Value: in(&c.MaxAge, newDuration(24*time.Hour, 0, year)), Help: "how long a connection of gRPC is kept, give or take 10 %; 0s: for ever"},
		{Name: "envoy-max-connection-age-grace", Group: groupEnvoy, Value: in(&c.MaxAgeGrace, newDuration(time.Hour, 0, year)), Help: "how long its calls may run on after that; 0s: for ever"},
		{Name: "envoy-all-or-none", Group: groupEnvoy, Value: in(&c.AllOrNone, newYesNo(false)), Help: "take from all limits of a request or from none, instead of counting each, also over the limit"},
		{Name: "envoy-merge-domains", Group: groupEnvoy, Value: in(&c.MergeDomains, newYesNo(false)), Help: "a domain may stand in several files"},
		{Name: "envoy-shadow", Group: groupEnvoy, Value: in(&c.Shadow, newYesNo(false)), Help: "let every request pass, and count what would have been over"},
		{Name: "envoy-quota", Group: groupEnvoy, Value: in(&c.Quota, newYesNo(false)), Help: "treat all limits as quotas: a request passes until all are over"},
		{Name: "envoy-near-limit", Group: groupEnvoy, Value: in(&c.NearLimit, newText("0.8", "ratio", readable(parseRatio))), Help: "share of a limit from which on hits count as near_limit in metrics, from 0 to 1"},
		{Name: "envoy-headers", Group: groupEnvoy, Value: in(&c.Headers, newText("", "names", readable(parseHeaders))), Help: "headers to add with the limit, what remains, and the seconds to its reset, such as 'RateLimit-Limit RateLimit-Remaining RateLimit-Reset'; empty: none"},
		{Name: "envoy-dynamic-metadata", Group: groupEnvoy, Value: in(&c.Metadata, newYesNo(false)), Help: "answer with dynamic metadata: the descriptors, and the metadata of limits that passed"},
		{Name: "envoy-health-needs-domain", Group: groupEnvoy, Value: in(&c.HealthNeedsDomain, newYesNo(false)), Help: "unhealthy while --envoy-config has no domain"},
	}
}

// EnvoyOptions are the settings of Envoy's rate limit service, for package envoy.
type EnvoyOptions struct {
	Bind, HTTPBind    string // empty: none is opened
	MetricsBind       string
	Config            string // a file or a directory
	TLS               func() *tls.Config
	ClientSAN         string
	MaxConnections    int
	MaxAge            time.Duration // of a connection; 0: for ever
	MaxAgeGrace       time.Duration
	AllOrNone         bool
	Merge             bool
	Shadow, Quota     bool
	NearLimit         float32
	Headers           []string // nil, or the names of three
	Metadata          bool
	HealthNeedsDomain bool
}

// EnvoyOptions returns the settings of Envoy's rate limit service. Load has read the certificates.
func (c *Config) EnvoyOptions() EnvoyOptions {
	e := &c.Envoy
	o := EnvoyOptions{
		Bind: e.Bind.Get(), HTTPBind: e.HTTPBind.Get(), MetricsBind: e.MetricsBind.Get(), Config: e.Config.Get(),
		ClientSAN:      e.ClientSAN.Get(),
		MaxConnections: int(e.MaxConnections.Get()), MaxAge: e.MaxAge.Get(), MaxAgeGrace: e.MaxAgeGrace.Get(),
		AllOrNone: e.AllOrNone.Get(), Merge: e.MergeDomains.Get(), Shadow: e.Shadow.Get(), Quota: e.Quota.Get(),
		Metadata: e.Metadata.Get(), HealthNeedsDomain: e.HealthNeedsDomain.Get(),
	}
	o.NearLimit, _ = parseRatio(e.NearLimit.Get())
	o.Headers, _ = parseHeaders(e.Headers.Get())
	if e.TLS.Get() {
		o.TLS = c.TLS.Keeper.Config
	}
	return o
}

// checkEnvoy checks what depends on several settings.
func (c *Config) checkEnvoy() error {
	e := &c.Envoy
	serves := e.Bind.Get() != "" || e.HTTPBind.Get() != ""
	switch {
	case serves && e.Config.Get() == "":
		return errors.New("--envoy-bind and --envoy-http-bind need --envoy-config, which has the limits")
	case !serves && e.MetricsBind.Get() != "":
		return errors.New("--envoy-metrics-bind is for --envoy-bind or --envoy-http-bind, which are not set")
	case !serves && e.Config.Get() != "":
		return errors.New("--envoy-config is for --envoy-bind or --envoy-http-bind, which are not set")
	case e.TLS.Get() && e.Bind.Get() == "":
		return errors.New("--envoy-tls is for --envoy-bind, which is not set")
	case e.ClientSAN.Get() != "" && (!e.TLS.Get() || c.TLS.Clients.Get() != "yes"):
		return errors.New("--envoy-tls-client-san needs the certificates of clients: --envoy-tls yes and --tls-auth-clients yes")
	}
	return nil
}

func checkEnvoyBind(text string) error {
	path, isUnix := strings.CutPrefix(text, "unix://")
	switch {
	case isUnix && filepath.IsAbs(path):
		return nil
	case isUnix || checkHostPort(text) != nil:
		return errors.New("argument must be host:port, such as 127.0.0.1:8081 or *:8081, or unix:///path")
	}
	return nil
}

func parseRatio(text string) (float32, error) {
	x, err := strconv.ParseFloat(text, 32)
	if err != nil || !(x >= 0 && x <= 1) {
		return 0, errors.New("argument must be from 0 to 1, such as 0.8")
	}
	return float32(x), nil
}

// parseHeaders reads none or three names.
func parseHeaders(text string) ([]string, error) {
	names := strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' })
	if len(names) == 0 {
		return nil, nil
	}
	if len(names) != 3 {
		return nil, fmt.Errorf("argument must be three names: those of the limit, of what remains and of the reset; or empty")
	}
	for _, name := range names {
		if strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789-_.!#$%&'*+^`|~") != "" {
			return nil, fmt.Errorf("argument must be names of headers: %.80q", name)
		}
	}
	return names, nil
}
