package web

import (
	"fmt"
	"strings"
	"testing"

	"celld/internal/celldtest"
	"celld/resp/config"
	"celld/resp/config/configtest"
)

// given returns a configuration with these settings, the part's own among them, and whether one is set.
func given(t *testing.T, texts ...string) (*config.Config, *settings, func(name string) bool) {
	t.Helper()
	s := &settings{}
	cfg, set := configtest.Given(t, s.part(), texts...)
	return cfg, s, set
}

// Settings that do not go together are errors that name them.
func TestSettingsThatDoNotGoTogether(t *testing.T) {
	word, empty := celldtest.TempFile(t, " word\r\n"), celldtest.TempFile(t, "\r\n")
	for settings, want := range map[string]string{
		"http-bind=127.0.0.1:0":                  "",
		"http-bind=localhost:0":                  "",
		"http-bind=[::1]:0":                      "",
		"http-bind=*:0":                          "--http-bind *:0 is not a loopback address",
		"http-bind=there:0":                      "--http-bind there:0 is not a loopback address",
		"http-bind=*:0 http-token-file=" + word:  "",
		"http-bind=*:0 http-token-file=" + empty: "read the HTTP token: " + empty + " is empty",
		"http-token-file=/none":                  "read the HTTP token: ",
		"http-tls=yes":                           "--http-tls is for --http-bind",
	} {
		cfg, _, set := given(t, strings.Fields(settings)...)
		if err := cfg.Load(set); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", settings, err, want)
		}
	}
}

// The settings become options.
func TestOptions(t *testing.T) {
	cfg, s, set := given(t, "http-bind=*:8080", "http-token-file="+celldtest.TempFile(t, " token \n"), "http-max-connections=3",
		"trusted-proxies=10.1.2.3/8, ::1", "http-pprof=yes", "http-ipv6-prefix=56")
	if err := cfg.Load(set); err != nil {
		t.Fatal(err)
	}
	o := s.options(cfg)
	if o.Bind != "*:8080" || o.Token != "token" || o.MaxConnections != 3 || fmt.Sprint(o.TrustedProxies) != "[10.0.0.0/8 ::1/128]" ||
		!o.Pprof || o.IPv6Prefix != 56 || o.TLS != nil {
		t.Errorf("%+v", o)
	}
}

// Values are read to their ends.
func TestBounds(t *testing.T) {
	for setting, ok := range map[string]bool{
		"trusted-proxies=10.0.0.0/33": false, "trusted-proxies=fe80::1%eth0": false, "trusted-proxies=x": false, "trusted-proxies=": true,
		"http-bind=": true, "http-bind=a:65535": true, "http-bind=a:65536": false, "http-bind=a:": false, "http-bind=:1": false,
		"http-bind=a:01": false, "http-bind=a": false, "http-ipv6-prefix=0": false, "http-ipv6-prefix=1": true,
		"http-ipv6-prefix=128": true, "http-ipv6-prefix=129": false,
	} {
		name, value, _ := strings.Cut(setting, "=")
		if err := config.New((&settings{}).part()).Setting(name).Value.Set(value); (err == nil) != ok {
			t.Errorf("%s: %v", setting, err)
		}
	}
}
