package web

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"celld/resp"
	"celld/resp/config"
	"celld/resp/web/guard"
)

// defaultIPv6Prefix is what a client has at least: each address of such a net may be his.
const defaultIPv6Prefix = 64

// settings are those of the HTTP port.
type settings struct {
	Options
	most   *config.Param[int64]
	secure bool          // by TLS
	made   *resp.Options // nil: there is no server yet
}

// Wing is the HTTP port.
func Wing() resp.Wing {
	s := &settings{}
	return resp.Wing{
		Part: s.part(),
		Open: func(o *resp.Options) error {
			s.made = o
			return nil
		},
		Serve: func(srv *resp.Server, o *resp.Options) error {
			h := s.options(o.Config)
			h.Inherited = o.Inherited.HTTP
			return Serve(srv, h, o.Log)
		},
	}
}

func (s *settings) part() config.Part { return config.Part{Rows: s.rows, Load: s.load, Door: s.door} }

func (s *settings) rows(*config.Config) []config.Setting {
	const group = "HTTP"
	return []config.Setting{
		{Name: "http-bind", Group: group, Value: config.Into(&s.Bind, config.NewText("", "host:port", config.CheckHostPort)), Help: "address to serve HTTP on: health, checks for proxies, limits as JSON, metrics and the live page; empty: none"},
		{Name: "http-token-file", Group: group, Value: config.Into(&s.TokenFile, config.NewText("", "path", config.CheckPath)), Help: "file that holds the token that HTTP clients must send, read again when it changes; needed where --http-bind is not loopback"},
		{Name: "http-max-connections", Group: group, Value: config.In(&s.most, config.NewInt(1000, 1, 1<<20, "n")), Help: "most HTTP connections at once; one more gets 503 and is closed"},
		{Name: "trusted-proxies", Group: group, Value: config.Parsed(&s.TrustedProxies, "", "nets", parseNets), Help: "proxies whose X-Forwarded-For is believed: addresses or CIDRs, separated by blanks or commas"},
		{Name: "http-ipv6-prefix", Group: group, Value: config.Into(&s.IPv6Prefix, config.NewInt(defaultIPv6Prefix, 1, 128, "bits")), Help: "checks count IPv6 addresses by their net of so many bits; 128: each by itself"},
		{Name: "http-tls", Group: group, Value: config.Into(&s.secure, config.NewYesNo(false)), Help: "serve HTTP by TLS only, with --tls-cert-file and the other settings of TLS"},
		{Name: "http-pprof", Group: group, Value: config.Into(&s.Pprof, config.NewYesNo(false)), Help: "serve profiles of Go under /debug/pprof/"},
	}
}

func (s *settings) door() config.Door {
	d := config.Door{Name: "http", MaxConnections: s.most, TLS: s.secure}
	if s.Bind != "" || s.made != nil && len(s.made.Inherited.HTTP) > 0 {
		d.Addresses = 1
	}
	return d
}

// Options are the settings as they are used.
type Options struct {
	Bind           string         // host:port; empty: none is opened
	Inherited      []net.Listener // in place of that; they are on TCP
	Token          string         // that clients must send; empty: none
	TokenFile      string         // which has it; empty: it does not change
	MaxConnections int
	TrustedProxies []netip.Prefix
	IPv6Prefix     int64              // bits of an IPv6 address that a check counts by; 0: 64
	TLS            func() *tls.Config // of a new connection; nil: there is no TLS
	Pprof          bool               // serve Go's profiles
}

func (s *settings) options(c *config.Config) Options {
	o := s.Options
	o.MaxConnections = int(s.most.Get())
	if s.secure {
		o.TLS = c.TLS.Keeper.Config
	}
	return o
}

// readToken reads the token. HTTP drops blanks around a value.
func (o *Options) readToken() (string, error) {
	return config.ReadSecret("the HTTP token", o.TokenFile, strings.TrimSpace)
}

// load reads the token. A port that others than this machine may reach needs one.
func (s *settings) load(*config.Config, func(string) bool) (err error) {
	if s.TokenFile != "" {
		if s.Token, err = s.readToken(); err != nil {
			return err
		}
	}
	if s.secure && s.Bind == "" {
		return errors.New("--http-tls is for --http-bind, which is not set")
	}
	if bind := s.Bind; bind != "" && s.Token == "" && !guard.LoopbackOnly(bind) {
		return fmt.Errorf("--http-bind %s is not a loopback address, so it needs --http-token-file", bind)
	}
	return nil
}

// parseNets reads addresses and CIDRs. An address is a net of itself.
func parseNets(text string) (nets []netip.Prefix, err error) {
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' }) {
		if addr, err := netip.ParseAddr(word); err == nil && addr.Zone() == "" {
			nets = append(nets, netip.PrefixFrom(addr, addr.BitLen()))
			continue
		}
		p, err := netip.ParsePrefix(word)
		if err != nil {
			return nil, fmt.Errorf("argument must be addresses or nets such as 10.0.0.0/8, not '%.64s'", word)
		}
		nets = append(nets, p.Masked())
	}
	return nets, nil
}
