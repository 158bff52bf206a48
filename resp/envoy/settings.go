package envoy

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"celld/resp"
	"celld/resp/config"
)

// settings are those of Envoy's rate limit service.
type settings struct {
	Options
	most, mostMessage *config.Param[int64]
	headers           *config.Param[string] // of --envoy-xds-headers
	secure            bool                  // by TLS
	follows           bool                  // --envoy-xds is given, be it wrong
}

// Wing is Envoy's rate limit service.
func Wing() resp.Wing {
	s := &settings{}
	return resp.Wing{
		Part:  s.part(),
		Serve: func(srv *resp.Server, o *resp.Options) error { return Serve(srv, s.options(o.Config), o.Log) },
	}
}

func (s *settings) part() config.Part {
	return config.Part{
		Rows: s.rows, Environ: ratelimitVariables, Foreign: isRatelimit, Needs: s.needs, Door: s.door,
		Load: func(c *config.Config, given func(string) bool) error {
			return errors.Join(s.check(c), s.checkXDS(c, given), CheckFiles(s.Config))
		},
		Check: func(c *config.Config) (warnings []string, mistakes, faults error) {
			warnings, mistakes = Check(s.options(c))
			return warnings, mistakes, nil
		},
	}
}

func (s *settings) rows(*config.Config) []config.Setting {
	const year = 365 * 24 * time.Hour
	const group = "Envoy's rate limit service"
	return append([]config.Setting{
		{Name: "envoy-bind", Group: group, Value: config.Into(&s.Bind, config.NewText("", "address", checkBind)), Help: "address to serve Envoy's rate limit service on by gRPC: host:port, or unix:///path; empty: none"},
		{Name: "envoy-http-bind", Group: group, Value: config.Into(&s.HTTPBind, config.NewText("", "host:port", config.CheckHostPort)), Help: "address to serve it on by HTTP: /json and /healthcheck; empty: none"},
		{Name: "envoy-metrics-bind", Group: group, Value: config.Into(&s.MetricsBind, config.NewText("", "host:port", config.CheckHostPort)), Help: "address to serve only metrics on, at any path and without a token; empty: none"},
		{Name: "envoy-config", Group: group, Value: config.Into(&s.Config, config.NewText("", "path", config.CheckPath)), Help: "its limits, in the YAML of envoyproxy/ratelimit: a file, or a directory of such files; celld reads them again when they change"},
		{Name: "envoy-tls", Group: group, Value: config.Into(&s.secure, config.NewYesNo(false)), Help: "serve gRPC by TLS only, with --tls-cert-file and the other settings of TLS"},
		{Name: "envoy-tls-client-san", Group: group, Value: config.Into(&s.ClientSAN, config.NewText("", "name", nil)), Help: "name that the certificate of a client must have; empty: any"},
		{Name: "envoy-max-connections", Group: group, Value: config.In(&s.most, config.NewInt(1000, 1, 1<<20, "n")), Help: "most connections at once, of gRPC and of HTTP each; one more waits"},
		{Name: "envoy-max-connection-age", Group: group, Value: config.Into(&s.MaxAge, config.NewDuration(24*time.Hour, 0, year)), Help: "how long a connection of gRPC is kept, give or take 10 %; 0s: for ever"},
		{Name: "envoy-max-connection-age-grace", Group: group, Value: config.Into(&s.MaxAgeGrace, config.NewDuration(time.Hour, 0, year)), Help: "how long its calls may run on after that; 0s: for ever"},
		{Name: "envoy-all-or-none", Group: group, Value: config.Into(&s.AllOrNone, config.NewYesNo(false)), Help: "take from all limits of a request or from none, instead of counting each, also over the limit"},
		{Name: "envoy-merge-domains", Group: group, Value: config.Into(&s.Merge, config.NewYesNo(false)), Help: "a domain may stand in several files"},
		{Name: "envoy-shadow", Group: group, Value: config.Into(&s.Shadow, config.NewYesNo(false)), Help: "let every request pass, and count what would have been over"},
		{Name: "envoy-quota", Group: group, Value: config.Into(&s.Quota, config.NewYesNo(false)), Help: "treat all limits as quotas: a request passes until all are over"},
		{Name: "envoy-near-limit", Group: group, Value: config.Parsed(&s.NearLimit, "0.8", "ratio", parseRatio), Help: "share of a limit from which on hits count as near_limit in metrics, from 0 to 1"},
		{Name: "envoy-headers", Group: group, Value: config.Parsed(&s.Headers, "", "names", parseHeaders), Help: "headers to add with the limit, what remains, and the seconds to its reset, such as 'RateLimit-Limit RateLimit-Remaining RateLimit-Reset'; empty: none"},
		{Name: "envoy-dynamic-metadata", Group: group, Value: config.Into(&s.Metadata, config.NewYesNo(false)), Help: "answer with dynamic metadata: the descriptors, and the metadata of limits that passed"},
		{Name: "envoy-health-needs-domain", Group: group, Value: config.Into(&s.HealthNeedsDomain, config.NewYesNo(false)), Help: "unhealthy while the configuration has no domain"},
	}, s.xdsRows(group)...)
}

func (s *settings) serves() bool { return s.Bind != "" || s.HTTPBind != "" }

func (s *settings) needs() string {
	if s.serves() {
		return ""
	}
	return "--envoy-bind"
}

func (s *settings) door() config.Door {
	d := config.Door{Name: "envoy", MaxConnections: s.most, TLS: s.secure}
	for _, bind := range []string{s.Bind, s.HTTPBind, s.MetricsBind} {
		if bind != "" {
			d.Addresses++
		}
	}
	return d
}

// Options are the settings as they are used.
type Options struct {
	Bind, HTTPBind    string // empty: none is opened
	MetricsBind       string
	Listen            func(setting, bind string) (net.Listener, error) // opens them; nil: on this machine
	Config            string                                           // a file or a directory; "": XDS has it
	XDS               XDS
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
	StartEmpty        bool // healthy before there is a configuration
}

func (s *settings) options(c *config.Config) Options {
	o := s.Options
	o.MaxConnections, o.XDS.MostBytes = int(s.most.Get()), int(s.mostMessage.Get())
	if s.secure {
		o.TLS = c.TLS.Keeper.Config
	}
	return o
}

// check checks what depends on several settings.
func (s *settings) check(c *config.Config) error {
	switch {
	case s.serves() && s.Config == "" && !s.follows:
		return errors.New("--envoy-bind and --envoy-http-bind need --envoy-config, which has the limits, or --envoy-xds")
	case !s.serves() && s.MetricsBind != "":
		return errors.New("--envoy-metrics-bind is for --envoy-bind or --envoy-http-bind, which are not set")
	case !s.serves() && s.Config+s.XDS.Server != "":
		return errors.New("--envoy-config and --envoy-xds are for --envoy-bind or --envoy-http-bind, which are not set")
	case s.secure && s.Bind == "":
		return errors.New("--envoy-tls is for --envoy-bind, which is not set")
	case s.ClientSAN != "" && (!s.secure || c.TLS.Clients.Get() != "yes"):
		return errors.New("--envoy-tls-client-san needs the certificates of clients: --envoy-tls yes and --tls-auth-clients yes")
	}
	return nil
}

func checkBind(text string) error {
	path, isUnix := strings.CutPrefix(text, "unix://")
	switch {
	case isUnix && filepath.IsAbs(path):
		return nil
	case isUnix || config.CheckHostPort(text) != nil:
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
