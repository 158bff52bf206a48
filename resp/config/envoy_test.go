package config

import (
	"reflect"
	"strings"
	"testing"
	"time"
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
		"envoy-max-connection-age=-1s":  "argument must be",
		"envoy-max-connection-age=0s":   "",
	} {
		name, value, _ := strings.Cut(setting, "=")
		err := New().Setting(name).Value.Set(value)
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", setting, err, want)
		}
	}
}

func TestEnvoyOptions(t *testing.T) {
	want := EnvoyOptions{MaxConnections: 1000, MaxAge: 24 * time.Hour, MaxAgeGrace: time.Hour, NearLimit: 0.8}
	if got := New().EnvoyOptions(); !reflect.DeepEqual(got, want) {
		t.Errorf("by default %+v, want %+v", got, want)
	}
	cfg, _ := given(t, "envoy-bind=a:1", "envoy-http-bind=b:2", "envoy-metrics-bind=c:3", "envoy-config=d", "envoy-tls-client-san=e",
		"envoy-max-connections=4", "envoy-max-connection-age=5s", "envoy-max-connection-age-grace=6s", "envoy-all-or-none=yes",
		"envoy-merge-domains=yes", "envoy-shadow=yes", "envoy-quota=yes", "envoy-near-limit=0.5", "envoy-headers=x, y z",
		"envoy-dynamic-metadata=yes", "envoy-health-needs-domain=yes")
	want = EnvoyOptions{Bind: "a:1", HTTPBind: "b:2", MetricsBind: "c:3", Config: "d", ClientSAN: "e", MaxConnections: 4,
		MaxAge: 5 * time.Second, MaxAgeGrace: 6 * time.Second, AllOrNone: true, Merge: true, Shadow: true, Quota: true, NearLimit: 0.5,
		Headers: []string{"x", "y", "z"}, Metadata: true, HealthNeedsDomain: true}
	if got := cfg.EnvoyOptions(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
