//go:build all

package envoy

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"text/template"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// limits are what Envoy's descriptors in testdata/envoy.yaml meet.
const limits = `domain: shop
descriptors:
  - {key: generic_key, value: slow, rate_limit: {unit: year, requests_per_unit: 2}}
  - {key: generic_key, value: costly, rate_limit: {unit: year, requests_per_unit: 10}}
  - {key: generic_key, value: roomy, rate_limit: {unit: year, requests_per_unit: 100}}
  - {key: host, value: app, rate_limit: {unit: year, requests_per_unit: 3}}
  - {key: remote_address, rate_limit: {unit: year, requests_per_unit: 1}}
  - {key: tenant, rate_limit: {unit: year, requests_per_unit: 1}}
  - {key: tenant, value: "big-*", rate_limit: {unlimited: true}}
  - {key: plan, value: gold, descriptors: [{key: tenant, rate_limit: {unit: year, requests_per_unit: 2, algorithm: slide}}]}
`

// front is an Envoy in front of an app. Requests to the first address are denied where celld does not answer.
type front struct {
	t           *testing.T
	denies, not string
}

// startFront starts one before celld, which it asks by TLS where it has the files for that.
func startFront(t *testing.T, celld, ca, cert, key string) *front {
	t.Helper()
	python := harness.CachePath(t, "proxies/bin/python") // envoy's own script names the folder that it was installed in
	if _, err := os.Stat(python); err != nil {
		celldtest.Missing(t, "not installed (make proxies does it): %v", err)
	}
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "app") }))
	t.Cleanup(app.Close)
	type listener struct {
		Port string
		Deny bool
	}
	listeners := []listener{{harness.FreePort(t), true}, {harness.FreePort(t), false}}
	_, appPort := harness.HostPort(app.Listener.Addr().String())
	_, celldPort := harness.HostPort(celld)
	var text strings.Builder
	if err := template.Must(template.ParseFiles("testdata/envoy.yaml")).Execute(&text, map[string]any{
		"Listeners": listeners, "App": appPort, "Celld": celldPort, "CA": ca, "Cert": cert, "Key": key,
	}); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	celldtest.WriteFile(t, text.String(), dir, "envoy.yaml")
	cmd := exec.Command(python, "-m", "envoy._main", "-c", "envoy.yaml", "-l", "warning", "--use-dynamic-base-id", "--concurrency", "1")
	cmd.Dir, cmd.Env = dir, append(harness.CleanEnv(), "HOME="+dir)
	f := &front{t, "http://127.0.0.1:" + listeners[0].Port, "http://127.0.0.1:" + listeners[1].Port}
	celldtest.RunPeer(t, "envoy", dir, cmd, func() bool {
		for _, url := range []string{f.denies, f.not} {
			resp, err := http.Get(url + "/look")
			if err != nil {
				return false
			}
			resp.Body.Close()
			if resp.StatusCode != 200 || resp.Header.Get("X-Ratelimit-Limit") == "" {
				return false // celld is not connected
			}
		}
		return true
	})
	return f
}

// get asks for a path, with headers as names and values in turn, and returns the status and what the headers say of limits.
func (f *front) get(url string, headers ...string) (status int, told string) {
	f.t.Helper()
	q, err := http.NewRequest("GET", url, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		q.Header.Set(headers[i], headers[i+1])
	}
	client := http.Client{Timeout: harness.ReplyTimeout}
	resp, err := client.Do(q)
	if err != nil {
		f.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		f.t.Fatal(err)
	}
	if (string(body) == "app") != (resp.StatusCode == 200) {
		f.t.Errorf("%s: %d, %q", url, resp.StatusCode, body)
	}
	for _, name := range []string{"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset", "Ratelimit-Limit",
		"Ratelimit-Remaining", "Ratelimit-Reset", "X-Envoy-Ratelimited", "X-Domain"} {
		value := resp.Header.Get(name)
		if n, err := strconv.Atoi(value); err == nil && strings.HasSuffix(name, "Reset") && n > 0 && n <= 2*31_536_000 {
			value = "soon"
		}
		told += " " + value
	}
	return resp.StatusCode, strings.TrimSpace(told)
}

// TestEnvoy asks for paths that have descriptors of all kinds: in the clear, by TLS with certificates of both sides, and where celld has
// its limits by xDS.
func TestEnvoy(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"in the clear", "TLS", "xDS"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			ca := celldtest.NewAuthority(t)
			file := filepath.Join(t.TempDir(), "limits.yaml")
			celldtest.WriteFile(t, limits, file)
			flags := []string{"--envoy-bind", "127.0.0.1:0", "--envoy-dynamic-metadata", "yes", "--envoy-headers",
				"RateLimit-Limit RateLimit-Remaining RateLimit-Reset"}
			caFile, cert, key := "", "", ""
			var c *control
			if kind == "xDS" {
				c = startControl(t, "", nil)
				flags = append(flags, "--envoy-xds", c.addr)
			} else {
				flags = append(flags, "--envoy-config", file)
			}
			if kind == "TLS" {
				serverCert, serverKey := ca.Sign("server", serverCert())
				flags = append(flags, "--envoy-tls", "yes", "--tls-cert-file", serverCert, "--tls-key-file", serverKey,
					"--tls-ca-cert-file", ca.File, "--envoy-tls-client-san", "envoy.mesh")
				caFile = ca.File
				cert, key = ca.Sign("envoy", clientCert("envoy.mesh"))
			}
			s := startOn(t, harness.Spec{Dies: true, Flags: flags})
			if c != nil {
				tells := c.next(t)
				tells.wants("", "", "")
				if err := tells.Send(worldOf(t, "1", configOf(t, limits))); err != nil {
					t.Fatal(err)
				}
				tells.wants("1", "n1", "")
			}
			f := startFront(t, s.grpc, caFile, cert, key)
			f.paths()
			s.Cmd.Process.Kill()
			<-s.Exited
			for range 2 {
				if status, told := f.get(f.denies + "/generic"); status != 500 {
					t.Errorf("without celld, where that denies: %d %s", status, told)
				}
				if status, told := f.get(f.not + "/generic"); status != 200 {
					t.Errorf("without celld, where that lets pass: %d %s", status, told)
				}
			}
		})
	}
}

// paths asks for all paths of testdata/envoy.yaml.
func (f *front) paths() {
	f.t.Helper()
	for _, test := range []struct {
		path, headers string
		status        int
		told          string
	}{
		{"/look", "", 200, "2, 2;w=31536000 2 soon 2 2 soon  shop"},
		{"/generic", "", 200, "2, 2;w=31536000 1 soon 2 1 soon  shop"},
		{"/look", "", 200, "2, 2;w=31536000 1 soon 2 1 soon  shop"},
		{"/generic", "", 200, "2, 2;w=31536000 0 soon 2 0 soon  shop"},
		{"/generic", "", 429, "2, 2;w=31536000 0 soon 2 0 soon true shop"},
		{"/look", "", 429, "2, 2;w=31536000 0 soon 2 0 soon true shop"},
		{"/address", "", 200, "1, 1;w=31536000 0 soon 1 0 soon  shop"},
		{"/address", "", 429, "1, 1;w=31536000 0 soon 1 0 soon true shop"},
		{"/header", "x-tenant a", 200, ""}, {"/header", "x-tenant a", 429, ""}, {"/header", "x-tenant b", 200, ""},
		{"/header", "", 200, ""}, {"/header", "", 200, ""}, // without the header no descriptor is sent
		{"/header", "x-tenant big-1", 200, ""}, {"/header", "x-tenant big-1", 200, ""},
		{"/nested", "x-tenant a x-plan gold", 200, "2, 2;w=31536000, 100;w=31536000 1 soon 2 1 soon  shop"},
		{"/nested", "x-tenant a x-plan gold", 200, ""}, {"/nested", "x-tenant a x-plan gold", 429, ""},
		{"/nested", "x-tenant b x-plan gold", 200, ""},
		{"/nested", "x-tenant a", 200, "100, 100;w=31536000 95 soon 100 95 soon  shop"}, // the second descriptor alone, the fifth time
		{"/cost", "x-cost 4", 200, "10, 10;w=31536000 6 soon 10 6 soon  shop"},
		{"/cost", "x-cost 0", 200, "10, 10;w=31536000 6 soon 10 6 soon  shop"},
		{"/cost", "x-cost 7", 429, ""},
		{"/", "", 200, "3, 3;w=31536000 2 soon 3 2 soon  shop"}, // the virtual host's
		{"/with-host", "", 200, ""}, {"/else", "", 200, "3, 3;w=31536000 0 soon 3 0 soon  shop"},
		{"/with-host", "", 429, ""}, {"/", "", 429, ""}, {"/generic", "", 429, ""}, {"/own", "", 200, "1, 1;w=3600 0 soon 1 0 soon  shop"},
	} {
		status, told := f.get(f.denies+test.path, strings.Fields(test.headers)...)
		if status != test.status || test.told != "" && told != test.told {
			f.t.Errorf("%s %s: %d %s; want %d %s", test.path, test.headers, status, told, test.status, test.told)
		}
	}
}
