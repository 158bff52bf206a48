//go:build all

package envoy

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// TestGatewayEnvironments starts celld with each environment that Envoy Gateway, AI Gateway, Istio and Contour have given their rate limit
// service, where addresses and files are those of this machine. It takes its limits, by xDS or from a file, and answers.
func TestGatewayEnvironments(t *testing.T) {
	ca := celldtest.NewAuthority(t)
	here := &x509.Certificate{DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	cert, key := ca.Sign("here", here)
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	plain, encrypted := harness.FreePort(t), harness.FreePort(t)
	redis := exec.Command(celldtest.Need(t, "redis-server"), "--port", plain, "--tls-port", encrypted, "--tls-cert-file", cert,
		"--tls-key-file", key, "--tls-ca-cert-file", ca.File, "--tls-auth-clients", "optional", "--save", "")
	celldtest.RunPeer(t, "redis-server", t.TempDir(), redis, func() bool {
		c, err := net.Dial("tcp", "127.0.0.1:"+encrypted)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	program := ratelimitProgram(t)
	var common string
	for line := range strings.Lines(celldtest.ReadFile(t, "testdata", "gateway.txt")) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "#") {
			continue
		} else if common == "" {
			common = line
			continue
		}
		t.Run(line, func(t *testing.T) {
			root := t.TempDir()
			celldtest.WriteFile(t, shop, mkdir(t, root, "ratelimit", "config"), "limits.yaml")
			env := strings.Fields(common + " " + line)
			has := func(variable string) bool { return value(env, variable) != "" }
			set := map[string]string{"RUNTIME_ROOT": root, "HOST": "127.0.0.1", "PORT": harness.FreePort(t), "GRPC_HOST": "127.0.0.1",
				"GRPC_PORT": harness.FreePort(t), "CACHE_KEY_PREFIX": fmt.Sprintf("%x:", line), "REDIS_URL": "127.0.0.1:" + plain,
				"SSL_CERT_FILE": ca.File}
			if has("REDIS_TLS") {
				set["REDIS_URL"] = "127.0.0.1:" + encrypted
			}
			if has("REDIS_TYPE") { // it names no Sentinel, with which the reference does not start either
				set["REDIS_TYPE"] = "SINGLE"
			}
			if has("PROMETHEUS_ADDR") {
				set["PROMETHEUS_ADDR"] = "127.0.0.1:" + harness.FreePort(t)
			}
			var c *control
			if byXDS := has("CONFIG_TYPE"); byXDS {
				secrets := ca.Client("", "")
				secrets.ClientCAs, secrets.ClientAuth = secrets.RootCAs, tls.RequireAndVerifyClientCert
				secrets.Certificates = []tls.Certificate{pair}
				if !has("CONFIG_GRPC_XDS_SERVER_USE_TLS") {
					secrets = nil
				}
				c = startControl(t, "", secrets)
				set["CONFIG_GRPC_XDS_SERVER_URL"] = c.addr
				set["CONFIG_GRPC_XDS_SERVER_TLS_SAN"] = "localhost"
			}
			for i, one := range env {
				name, text, _ := strings.Cut(one, "=")
				switch base := filepath.Base(text); {
				case !strings.HasPrefix(text, "/"):
				case base == "ca.crt":
					env[i] = name + "=" + ca.File
				case base == "tls.crt":
					env[i] = name + "=" + cert
				case base == "tls.key":
					env[i] = name + "=" + key
				}
			}
			for name, text := range set {
				if name != "CONFIG_GRPC_XDS_SERVER_TLS_SAN" || has("CONFIG_GRPC_XDS_SERVER_USE_TLS") {
					env = append(env, name+"="+text)
				}
			}
			if has("REDIS_AUTH") { // which this Redis does not ask for
				env = append(env, "REDIS_AUTH=")
			}
			srv := startOn(t, harness.Spec{Binary: program, Env: env, Flags: []string{"--quotaRateLimitServiceAddr=x"}})
			if c != nil {
				s := c.next(t)
				s.wants("", "", "")
				s.tells("1", "shop=2")
				s.wants("1", "n1", "")
			}
			if has("GRPC_SERVER_USE_TLS") {
				expect(t, dial(t, srv.grpc, ca.Client("", "")), "client=ann", firstOf2)
			} else {
				expect(t, dial(t, srv.grpc), "client=ann", firstOf2)
			}
			if code, _, body := harness.Get(srv.Server, srv.http+"/healthcheck"); code != 200 {
				t.Errorf("the health is %d %s", code, body)
			}
			if has("PROMETHEUS_ADDR") {
				code, _, page := harness.Get(srv.Server, srv.metrics+"/metrics")
				if code != 200 || metric(page, "ratelimit_service_config_load_success") != "1" {
					t.Errorf("metrics are %d:\n%s", code, page)
				}
			}
			srv.Stop()
		})
	}
}
