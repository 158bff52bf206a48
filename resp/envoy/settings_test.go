package envoy

import (
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"celld/internal/celldtest"
	"celld/resp/config"
	"celld/resp/config/configtest"
)

func TestEnvoySettings(t *testing.T) {
	const address = "argument must be host:port, such as 127.0.0.1:8081 or *:8081, or unix:///path"
	const names = "argument must be names of headers: "
	for setting, want := range map[string]string{ // "": it is taken
		"envoy-bind=":                   "",
		"envoy-bind=*:8081":             "",
		"envoy-bind=[::]:8081":          "",
		"envoy-bind=unix:///run/x.sock": "",
		"envoy-bind=unix://x.sock":      address,
		"envoy-bind=unix:/x":            address,
		"envoy-bind=8081":               address,
		"envoy-http-bind=unix:///x":     "argument must be host:port",
		"envoy-near-limit=0":            "",
		"envoy-near-limit=1.0":          "",
		"envoy-near-limit=1.01":         "argument must be from 0 to 1, such as 0.8",
		"envoy-near-limit=-0.1":         "argument must be from 0 to 1, such as 0.8",
		"envoy-near-limit=nan":          "argument must be from 0 to 1, such as 0.8",
		"envoy-headers=":                "",
		"envoy-headers= a,B-2, _c":      "",
		"envoy-headers=a b":             "argument must be three names: those of the limit, of what remains and of the reset; or empty",
		"envoy-headers=a b c:":          names,
		"envoy-headers=a b \r\n":        names,
		"envoy-headers=a b é":           names,
		"envoy-max-connections=0":       "argument must be between 1 and 1048576",
		"envoy-xds=x":                   "argument must be host:port",
		"envoy-xds=*:1":                 "argument must be host:port, such as envoy-gateway:18001",
		"envoy-xds=:1":                  "argument must be host:port, such as envoy-gateway:18001",
		"envoy-xds=a:1,b:2":             "argument must be host:port, such as envoy-gateway:18001",
		"envoy-xds=[::1]:1":             "",
		"envoy-xds-node-metadata==a":    "argument must be pairs such as a=b,c=d",
		"envoy-max-connection-age=-1s":  "argument must be",
		"envoy-max-connection-age=0s":   "",
	} {
		name, value, _ := strings.Cut(setting, "=")
		err := config.New((&settings{}).part()).Setting(name).Value.Set(value)
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", setting, err, want)
		}
	}
}

func TestEnvoyOptions(t *testing.T) {
	cfg, s, _ := given(t)
	xds := XDS{Node: "celld", MostBytes: 4 << 20, Metadata: map[string]any{}}
	want := Options{XDS: xds, MaxConnections: 1000, MaxAge: 24 * time.Hour, MaxAgeGrace: time.Hour, NearLimit: 0.8}
	if got := s.options(cfg); !reflect.DeepEqual(got, want) {
		t.Errorf("by default %+v, want %+v", got, want)
	}
	cfg, s, _ = given(t, "envoy-bind=a:1", "envoy-http-bind=b:2", "envoy-metrics-bind=c:3", "envoy-config=d", "envoy-tls-client-san=e",
		"envoy-max-connections=4", "envoy-max-connection-age=5s", "envoy-max-connection-age-grace=6s", "envoy-all-or-none=yes",
		"envoy-merge-domains=yes", "envoy-shadow=yes", "envoy-quota=yes", "envoy-near-limit=0.5", "envoy-headers=x, y z",
		"envoy-dynamic-metadata=yes", "envoy-health-needs-domain=yes", "envoy-start-empty=yes")
	want = Options{XDS: xds, StartEmpty: true, Bind: "a:1", HTTPBind: "b:2", MetricsBind: "c:3", Config: "d", ClientSAN: "e",
		MaxConnections: 4, MaxAge: 5 * time.Second, MaxAgeGrace: 6 * time.Second, AllOrNone: true, Merge: true, Shadow: true,
		Quota: true, NearLimit: 0.5,
		Headers: []string{"x", "y", "z"}, Metadata: true, HealthNeedsDomain: true}
	if got := s.options(cfg); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// given returns a configuration with these settings, the part's own among them, and whether one is set.
func given(t *testing.T, texts ...string) (*config.Config, *settings, func(name string) bool) {
	t.Helper()
	s := &settings{}
	cfg, set := configtest.Given(t, s.part(), texts...)
	return cfg, s, set
}

// The headers that celld sends to an xDS server may have a token, so nobody is shown them.
func TestXDSHeaders(t *testing.T) {
	cfg, s, set := given(t, "envoy-bind=*:1", "envoy-xds=x:1", "envoy-xds-headers=authorization:token, a : b,a:c")
	want := http.Header{"Authorization": {"token"}, "A": {"b", "c"}}
	if err := cfg.Load(set); err != nil || !reflect.DeepEqual(s.XDS.Headers, want) {
		t.Errorf("%v %v, want %v", s.XDS.Headers, err, want)
	}
	if got := cfg.Setting("envoy-xds-headers").Value.String(); got != "(secret)" {
		t.Errorf("they are shown as %s", got)
	}
}

// Settings that do not go together are errors that name them.
func TestSettingsThatDoNotGoTogether(t *testing.T) {
	file := celldtest.TempFile(t, "domain: a\n")
	for settings, want := range map[string]string{
		"envoy-bind=*:1 envoy-metrics-bind=*:2 envoy-config=" + file: "",
		"envoy-http-bind=*:1 envoy-config=" + file:                   "",
		"envoy-bind=*:1":               "--envoy-bind and --envoy-http-bind need --envoy-config",
		"envoy-http-bind=*:1":          "--envoy-bind and --envoy-http-bind need --envoy-config",
		"envoy-config=x":               "--envoy-config and --envoy-xds are for --envoy-bind or --envoy-http-bind",
		"envoy-xds=x:1":                "--envoy-config and --envoy-xds are for --envoy-bind or --envoy-http-bind",
		"envoy-bind=*:1 envoy-xds=x:1": "",
		"envoy-bind=*:1 envoy-xds=x:1 envoy-xds-headers=token":                        "--envoy-xds-headers: argument must be pairs such as a:b,c:d",
		"envoy-bind=*:1 envoy-config=x envoy-xds-node-id=n":                           "--envoy-xds-node-id is for --envoy-xds, which is not set",
		"envoy-bind=*:1 envoy-xds=x:1 envoy-config=x":                                 "--envoy-xds is in place of --envoy-config",
		"envoy-bind=*:1 envoy-xds=x:1 envoy-xds-tls-san=x":                            "need --envoy-xds-tls yes",
		"envoy-bind=*:1 envoy-xds=x:1 envoy-xds-tls=yes":                              "",
		"envoy-bind=*:1 envoy-xds=x:1 envoy-xds-tls=yes envoy-xds-tls-cert-file=x":    "--envoy-xds-tls: a client certificate needs two files: the certificate and its key",
		"envoy-bind=*:1 envoy-xds=x:1 envoy-xds-tls=yes envoy-xds-tls-ca-cert-file=x": "--envoy-xds-tls: the CA certificates: open x: no such file or directory",
		"envoy-metrics-bind=*:1":                                                      "--envoy-metrics-bind is for --envoy-bind or --envoy-http-bind",
		"envoy-tls=yes":                                                               "--envoy-tls is for --envoy-bind",
		"envoy-http-bind=*:1 envoy-config=x envoy-tls=yes":                            "--envoy-tls is for --envoy-bind",
		"envoy-bind=*:1 envoy-config=x envoy-tls=yes":                                 "--envoy-tls needs --tls-cert-file and --tls-key-file and --tls-ca-",
		"envoy-bind=*:1 envoy-config=x envoy-tls-client-san=x":                        "--envoy-tls-client-san needs the certificates of clients",
		"envoy-bind=*:1 envoy-config=/none":                                           "--envoy-config: ",
	} {
		cfg, _, set := given(t, strings.Fields(settings)...)
		if err := cfg.Load(set); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", settings, err, want)
		}
	}
}
