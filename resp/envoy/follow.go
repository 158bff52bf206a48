package envoy

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"celld/persistence/regular"
	"celld/resp/certs"
	"celld/resp/config"
	"celld/resp/envoy/domains"
	"celld/resp/envoy/message"
	"celld/resp/envoy/xds"
	"celld/resp/metrics"
)

// XDS is a server that has the configuration. The zero value is none.
type XDS struct {
	Server    string // host:port
	Node      string
	Metadata  map[string]any
	Headers   http.Header
	Secure    bool
	Files     certs.Files // with Secure: Cert and Key of the client, and CA; each may be empty
	SAN       string      // that the server's certificate must have; "": its host
	MostBytes int
	Keep      string // a file that keeps what is in force; "": none
}

// keepName is that file in --dir: a DiscoveryResponse.
const keepName = "envoy-xds.pb"

// follower takes the configuration from a server.
type follower struct {
	port    *port
	options XDS
	client  *xds.Client
	sinceNS atomic.Int64 // when it came that is in force, Unix ns; 0: none has
}

// follow begins to take the configuration from its server. What was kept is in force until one comes.
func (d *port) follow(o XDS) {
	w := &follower{port: d, options: o}
	w.client = xds.New(xds.Options{Server: o.Server, Headers: o.Headers, Most: o.MostBytes, Take: w.take, Log: d.log, Panicked: d.panicked,
		Ask: message.Subscription{Node: o.Node, Metadata: o.Metadata, TypeURL: "type.googleapis.com/" + domains.MessageName}})
	if o.Secure {
		w.client.TLS = o.config
	}
	d.stats.loads = w.client.Counts
	d.server.OnMetrics(w.declare)
	w.restore()
	ctx, end := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.client.Run(ctx)
	}()
	d.server.OnStop(func(context.Context) {
		end()
		<-ended
	})
}

// config reads the files, so each connection has them as they are then.
func (o *XDS) config() (*tls.Config, error) {
	host, _, _ := net.SplitHostPort(o.Server) // the setting has been checked
	return o.Files.Client(cmp.Or(o.SAN, host))
}

// take puts a configuration to use, and keeps it.
func (w *follower) take(d *message.Discovery, data []byte) (about []any, err error) {
	about, err = w.use(d, time.Now())
	if err != nil || w.options.Keep == "" {
		return about, err
	}
	if err := regular.Replace(w.options.Keep, data, 0o600); err != nil {
		w.port.log.Warn("the configuration cannot be kept, and a start will not have it", "error", err)
	}
	return about, nil
}

func (w *follower) use(d *message.Discovery, since time.Time) (about []any, err error) {
	set, err := domains.ParseMessages(d.Resources, domains.Options{Merge: w.port.options.Merge})
	if err != nil {
		return nil, err
	}
	w.port.set.Store(set)
	w.sinceNS.Store(since.UnixNano())
	return []any{"domains", set.Len(), "limits", set.Limits()}, nil
}

// restore puts to use what an earlier process has kept.
func (w *follower) restore() {
	if w.options.Keep == "" {
		return
	}
	data, err := regular.ReadFile(w.options.Keep)
	if errors.Is(err, os.ErrNotExist) {
		return
	}
	var about []any
	if err == nil {
		about, err = w.restoreFrom(data)
	}
	if err != nil {
		w.port.log.Warn("the kept configuration is of no use: celld waits for that of the xDS server", "file", w.options.Keep, "error", err)
		return
	}
	w.port.log.Info("the kept configuration is in force until the xDS server tells another", about...)
}

func (w *follower) restoreFrom(data []byte) (about []any, err error) {
	info, err := os.Stat(w.options.Keep)
	if err != nil {
		return nil, err
	}
	d, err := message.UnmarshalDiscovery(data)
	if err != nil {
		return nil, err
	}
	about, err = w.use(d, info.ModTime())
	return append([]any{"version", d.Version, "age", time.Since(info.ModTime()).Round(time.Second)}, about...), err
}

// declare declares what there is to know of the server.
func (w *follower) declare(l *metrics.List) {
	connected := 0
	if w.client.Connected() {
		connected = 1
	}
	l.Gauge(metrics.Metric{Name: "celld_envoy_xds_connected", Help: "1: the server of --envoy-xds answers; 0: it is away.",
		Value: connected})
	if since := w.sinceNS.Load(); since > 0 {
		l.Gauge(metrics.Metric{Name: "celld_envoy_xds_config_timestamp_seconds", Help: "When the configuration came that is in force.",
			Value: float64(since) / 1e9})
	}
}

// xdsRows are the settings.
func (s *settings) xdsRows(group string) []config.Setting {
	x := &s.XDS
	return []config.Setting{
		{Name: "envoy-xds", Group: group, Value: config.Into(&x.Server, config.NewText("", "host:port", s.checkServer)), Help: "server that tells the limits by xDS, in place of --envoy-config; empty: none"},
		{Name: "envoy-xds-node-id", Group: group, Value: config.Into(&x.Node, config.NewText("celld", "name", nil)), Help: "what celld calls itself there"},
		{Name: "envoy-xds-node-metadata", Group: group, Value: config.Parsed(&x.Metadata, "", "k=v,…", parseMetadata), Help: "what else it says of itself"},
		{Name: "envoy-xds-headers", Group: group, Secret: true, Value: config.In(&s.headers, config.NewSecret("k:v,…", config.Hidden)), Help: "headers that it sends, such as authorization:token"},
		{Name: "envoy-xds-tls", Group: group, Value: config.Into(&x.Secure, config.NewYesNo(false)), Help: "connect to it by TLS"},
		{Name: "envoy-xds-tls-cert-file", Group: group, Value: config.Into(&x.Files.Cert, config.NewText("", "path", config.CheckPath)), Help: "celld's own certificate for that, in PEM; each connection reads it anew"},
		{Name: "envoy-xds-tls-key-file", Group: group, Value: config.Into(&x.Files.Key, config.NewText("", "path", config.CheckPath)), Help: "its key, in PEM"},
		{Name: "envoy-xds-tls-ca-cert-file", Group: group, Value: config.Into(&x.Files.CA, config.NewText("", "path", config.CheckPath)), Help: "certificates that vouch for the server, in PEM; the default is those of the system"},
		{Name: "envoy-xds-tls-san", Group: group, Value: config.Into(&x.SAN, config.NewText("", "name", nil)), Help: "name that the server's certificate must have; empty: its host"},
		{Name: "envoy-xds-max-message", Group: group, Value: config.In(&s.mostMessage, config.NewInt(4<<20, 1<<10, 1<<30, "bytes")), Help: "largest configuration that is read"},
		{Name: "envoy-start-empty", Group: group, Value: config.Into(&s.StartEmpty, config.NewYesNo(false)), Help: "healthy before there is a configuration; calls are answered with an error until then"},
	}
}

// checkServer checks the address of a server, and notes that there is to be one.
func (s *settings) checkServer(text string) error {
	s.follows = text != ""
	host, _, _ := net.SplitHostPort(text)
	if text != "" && (host == "" || host == "*" || config.CheckHostPort(text) != nil) {
		return errors.New("argument must be host:port, such as envoy-gateway:18001")
	}
	return nil
}

// pairs reads pairs with commas between them, each with a sign between its parts.
func pairs(text, sign string) (all [][2]string, err error) {
	for pair := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' }) {
		name, value, both := strings.Cut(pair, sign)
		if name = strings.TrimSpace(name); !both || name == "" {
			return nil, errors.New("argument must be pairs such as a" + sign + "b,c" + sign + "d")
		}
		all = append(all, [2]string{name, strings.TrimSpace(value)})
	}
	return all, nil
}

func parseMetadata(text string) (map[string]any, error) {
	list, err := pairs(text, "=")
	all := map[string]any{}
	for _, p := range list {
		all[p[0]] = p[1]
	}
	return all, err
}

func parseXDSHeaders(text string) (http.Header, error) {
	list, err := pairs(text, ":")
	all := http.Header{}
	for _, p := range list {
		all.Add(p[0], p[1])
	}
	return all, err
}

// checkXDS checks what depends on several settings.
func (s *settings) checkXDS(c *config.Config, given func(setting string) bool) (err error) {
	x := &s.XDS
	if x.Server == "" {
		for _, row := range c.Settings() {
			if given(row.Name) && strings.HasPrefix(row.Name, "envoy-xds-") && s.serves() && !s.follows {
				return fmt.Errorf("--%s is for --envoy-xds, which is not set", row.Name)
			}
		}
		return nil
	}
	if given("dir") {
		x.Keep = filepath.Join(c.Dir.Get(), keepName)
	}
	if x.Headers, err = parseXDSHeaders(s.headers.Get()); err != nil {
		return fmt.Errorf("--envoy-xds-headers: %w", err) // which does not tell the secret
	}
	switch files := x.Files.Cert + x.Files.Key + x.Files.CA + x.SAN; {
	case s.Config != "":
		return errors.New("--envoy-xds is in place of --envoy-config: give one of them")
	case !x.Secure && files != "":
		return errors.New("the certificates and the name of --envoy-xds-tls-… need --envoy-xds-tls yes")
	case x.Secure:
		if _, err = x.config(); err != nil {
			return fmt.Errorf("--envoy-xds-tls: %w", err)
		}
	}
	return nil
}
