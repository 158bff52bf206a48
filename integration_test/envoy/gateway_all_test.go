//go:build all

package envoy

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"iter"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"go.yaml.in/yaml/v3"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// place is where such an environment leads to on this machine: files of TLS, and a Redis.
type place struct {
	ca               *celldtest.Authority
	cert, key        string
	pair             tls.Certificate
	plain, encrypted string // ports of the Redis
}

func startPlace(t *testing.T) *place {
	p := &place{ca: celldtest.NewAuthority(t), plain: harness.FreePort(t), encrypted: harness.FreePort(t)}
	here := &x509.Certificate{DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	p.cert, p.key = p.ca.Sign("here", here)
	var err error
	if p.pair, err = tls.LoadX509KeyPair(p.cert, p.key); err != nil {
		t.Fatal(err)
	}
	redis := exec.Command(celldtest.Need(t, "redis-server"), "--port", p.plain, "--tls-port", p.encrypted, "--tls-cert-file", p.cert,
		"--tls-key-file", p.key, "--tls-ca-cert-file", p.ca.File, "--tls-auth-clients", "optional", "--save", "")
	celldtest.RunPeer(t, "redis-server", t.TempDir(), redis, func() bool {
		c, err := net.Dial("tcp", "127.0.0.1:"+p.encrypted)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	return p
}

// env is an environment with addresses and files of this machine, and the xDS server that it names.
func (p *place) env(t *testing.T, env []string) ([]string, *control) {
	t.Helper()
	root := t.TempDir()
	celldtest.WriteFile(t, shop, mkdir(t, root, "ratelimit", "config"), "limits.yaml")
	env = slices.Clone(env)
	has := func(variable string) bool { return value(env, variable) != "" }
	set := map[string]string{"RUNTIME_ROOT": root, "HOST": "127.0.0.1", "PORT": harness.FreePort(t), "GRPC_HOST": "127.0.0.1",
		"GRPC_PORT": harness.FreePort(t), "CACHE_KEY_PREFIX": fmt.Sprintf("%x:", env), "SSL_CERT_FILE": p.ca.File}
	if has("REDIS_URL") {
		set["REDIS_URL"] = "127.0.0.1:" + p.plain
		if has("REDIS_TLS") {
			set["REDIS_URL"] = "127.0.0.1:" + p.encrypted
		}
	}
	if has("REDIS_TYPE") { // it names no Sentinel, with which the reference does not start either
		set["REDIS_TYPE"] = "SINGLE"
	}
	if has("PROMETHEUS_ADDR") {
		set["PROMETHEUS_ADDR"] = "127.0.0.1:" + harness.FreePort(t)
	}
	var c *control
	if byXDS := has("CONFIG_TYPE"); byXDS {
		secrets := p.ca.Client("", "")
		secrets.ClientCAs, secrets.ClientAuth = secrets.RootCAs, tls.RequireAndVerifyClientCert
		secrets.Certificates = []tls.Certificate{p.pair}
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
			env[i] = name + "=" + p.ca.File
		case base == "tls.crt":
			env[i] = name + "=" + p.cert
		case base == "tls.key":
			env[i] = name + "=" + p.key
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
	return env, c
}

// dial connects to a celld with such an environment.
func (p *place) dial(t *testing.T, srv *served, env []string) ratelimit.RateLimitServiceClient {
	t.Helper()
	if value(env, "GRPC_SERVER_USE_TLS") != "" {
		return dial(t, srv.grpc, p.ca.Client("", ""))
	}
	return dial(t, srv.grpc)
}

// gatewayEnvironments are those of testdata/gateway.txt, by their lines.
func gatewayEnvironments(t *testing.T) iter.Seq2[string, []string] {
	return func(yield func(string, []string) bool) {
		var common string
		for line := range strings.Lines(celldtest.ReadFile(t, "testdata", "gateway.txt")) {
			switch line = strings.TrimSpace(line); {
			case strings.HasPrefix(line, "#"):
			case common == "":
				common = line
			case !yield(line, strings.Fields(common+" "+line)):
				return
			}
		}
	}
}

// TestGatewayEnvironments starts celld with each environment that Envoy Gateway, AI Gateway, Istio and Contour have given their rate limit
// service, where addresses and files are those of this machine. It takes its limits, by xDS or from a file, and answers.
func TestGatewayEnvironments(t *testing.T) {
	p, program := startPlace(t), ratelimitProgram(t)
	for line, of := range gatewayEnvironments(t) {
		t.Run(line, func(t *testing.T) {
			env, c := p.env(t, of)
			srv := startOn(t, harness.Spec{Binary: program, Env: env, Flags: []string{"--quotaRateLimitServiceAddr=x"}})
			if c != nil {
				c.next(t).takes("1", "shop=2")
			}
			celldtest.Eventually(t, "it is ready, connected to the Redis", func() bool {
				code, _, _ := harness.Get(srv.Server, srv.http+"/healthcheck")
				return code == 200
			})
			expect(t, p.dial(t, srv, env), "client=ann", firstOf2)
			if value(env, "PROMETHEUS_ADDR") != "" {
				code, _, page := harness.Get(srv.Server, srv.metrics+"/metrics")
				if code != 200 || metric(page, "ratelimit_service_config_load_success") != "1" {
					t.Errorf("metrics are %d:\n%s", code, page)
				}
			}
			srv.Stop()
		})
	}
}

// variables is env of a container in a manifest.
type variables []struct{ Name, Value string }

// TestGatewayManifests starts celld as the manifests in examples/envoy do. It needs no Redis, and keeps limits and configuration over a
// restart, before the xDS server is back.
func TestGatewayManifests(t *testing.T) {
	t.Parallel()
	var values, shown struct {
		Config struct {
			EnvoyGateway struct {
				Provider struct {
					Kubernetes struct {
						RateLimitDeployment struct{ Container struct{ Env variables } } `yaml:"rateLimitDeployment"`
					}
				}
			} `yaml:"envoyGateway"`
		}
	}
	read := func(text string, into any) {
		if err := yaml.Unmarshal([]byte(text), into); err != nil { // the first document
			t.Fatal(err)
		}
	}
	read(celldtest.ReadFile(t, "../../examples/envoy/gateway-values.yaml"), &values)
	_, text, _ := strings.Cut(celldtest.ReadFile(t, "../../docs/how-to/envoy.md"), "in the values of its chart:\n\n```yaml\n")
	text, _, _ = strings.Cut(text, "```")
	read(text, &shown)
	more := values.Config.EnvoyGateway.Provider.Kubernetes.RateLimitDeployment.Container.Env
	few := shown.Config.EnvoyGateway.Provider.Kubernetes.RateLimitDeployment.Container.Env
	if len(few) != 1 || few[0] != more[0] { // the rest is for the volume
		t.Errorf("the page has %v, the example %v", few, more)
	}
	var deployment struct {
		Spec struct {
			Template struct {
				Spec struct{ Containers []struct{ Env variables } }
			}
		}
	}
	read(celldtest.ReadFile(t, "../../examples/envoy/ai-gateway.yaml"), &deployment)
	p, program := startPlace(t), ratelimitProgram(t)
	of := map[string][]string{"AI Gateway": nil}
	for line, env := range gatewayEnvironments(t) {
		if value(env, "CONFIG_TYPE") != "" { // Envoy Gateway puts variables of its own values last
			of[line] = env
		}
	}
	for name, env := range of {
		t.Run(name, func(t *testing.T) {
			set := more
			if env == nil {
				set = deployment.Spec.Template.Spec.Containers[0].Env
			}
			for _, v := range set {
				env = append(env, v.Name+"="+v.Value)
			}
			env, c := p.env(t, env)
			env = append(env, "CELLD_DIR="+t.TempDir())
			srv := startOn(t, harness.Spec{Binary: program, Env: env})
			c.next(t).takes("1", "shop=2")
			expect(t, p.dial(t, srv, env), "client=ann", firstOf2)
			srv.Stop()
			c.server.Stop()
			srv = startOn(t, harness.Spec{Binary: program, Env: env})
			expect(t, p.dial(t, srv, env), "client=ann", secondOf2)
			srv.Logs(`"store":"memory"`)
			srv.Stop()
		})
	}
}
