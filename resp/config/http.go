package config

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// httpConfig are the settings of the HTTP port.
type httpConfig struct {
	Bind           *Param[string]
	TokenFile      *Param[string]
	MaxConnections *Param[int64]
	TrustedProxies *Param[string]
	TLS            *Param[bool]
	Pprof          *Param[bool]
	token          string // that the file holds
}

func (c *httpConfig) rows() []Setting {
	return []Setting{
		{Name: "http-bind", Group: groupHTTP, Value: in(&c.Bind, newText("", "host:port", checkHostPort)), Help: "address to serve HTTP on: health, checks for proxies, limits as JSON, metrics and the live page; empty: none"},
		{Name: "http-token-file", Group: groupHTTP, Value: in(&c.TokenFile, newText("", "path", checkPath)), Help: "file that holds the token that HTTP clients must send; needed where --http-bind is not loopback"},
		{Name: "http-max-connections", Group: groupHTTP, Value: in(&c.MaxConnections, newInt(1000, 1, 1<<20, "n")), Help: "most HTTP connections at once; one more gets 503 and is closed"},
		{Name: "trusted-proxies", Group: groupHTTP, Value: in(&c.TrustedProxies, newText("", "nets", readable(parseNets))), Help: "proxies whose X-Forwarded-For is believed: addresses or CIDRs, separated by blanks or commas"},
		{Name: "http-tls", Group: groupHTTP, Value: in(&c.TLS, newYesNo(false)), Help: "serve HTTP by TLS only, with --tls-cert-file and the other settings of TLS"},
		{Name: "http-pprof", Group: groupHTTP, Value: in(&c.Pprof, newYesNo(false)), Help: "serve profiles of Go under /debug/pprof/"},
	}
}

// HTTPOptions are the settings of the HTTP port, for package web.
type HTTPOptions struct {
	Bind           string         // host:port; empty: none is opened
	Inherited      []net.Listener // in place of that; they are on TCP
	Token          string         // that clients must send; empty: none
	MaxConnections int
	TrustedProxies []netip.Prefix
	TLS            func() *tls.Config // of a new connection; nil: there is no TLS
	Pprof          bool               // serve Go's profiles
}

// HTTPOptions returns the settings of the HTTP port. Load has read the token and the certificates.
func (c *Config) HTTPOptions() HTTPOptions {
	h := &c.HTTP
	nets, _ := parseNets(h.TrustedProxies.Get())
	settings := HTTPOptions{Bind: h.Bind.Get(), Token: h.token, MaxConnections: int(h.MaxConnections.Get()), TrustedProxies: nets,
		Pprof: h.Pprof.Get()}
	if h.TLS.Get() {
		settings.TLS = c.TLS.Keeper.Config
	}
	return settings
}

// loadHTTP reads the token. A port that others than this machine may reach needs one.
func (c *Config) loadHTTP() error {
	h := &c.HTTP
	if path := h.TokenFile.Get(); path != "" {
		var err error
		if h.token, err = readSecret("the HTTP token", path, strings.TrimSpace); err != nil { // HTTP drops blanks around a header's value
			return err
		}
	}
	if h.TLS.Get() && h.Bind.Get() == "" {
		return errors.New("--http-tls is for --http-bind, which is not set")
	}
	if bind := h.Bind.Get(); bind != "" && h.token == "" && !LoopbackOnly(bind) {
		return fmt.Errorf("--http-bind %s is not a loopback address, so it needs --http-token-file", bind)
	}
	return nil
}

// LoopbackOnly says that only this machine reaches an address. Of names, only localhost is known to be so.
func LoopbackOnly(hostPort string) bool {
	host, _, _ := net.SplitHostPort(hostPort)
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

func checkHostPort(text string) error {
	if text == "" {
		return nil
	}
	host, port, err := net.SplitHostPort(text)
	if n, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || host == "" || strconv.FormatUint(n, 10) != port {
		return errors.New("argument must be host:port, such as 127.0.0.1:8080 or *:8080")
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
