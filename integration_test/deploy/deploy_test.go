package deploy

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"
	"go.yaml.in/yaml/v3"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// A field of these that the files misspell is an error.
type (
	composeFile struct {
		Services map[string]composeService
		Networks map[string]struct{ Internal bool }
		Volumes  map[string]struct{}
	}
	composeService struct {
		Image, Build, Restart string
		Command, Volumes      []string
		Environment           map[string]string
		DependsOn             map[string]struct{ Condition string } `yaml:"depends_on"`
		Networks              []string
		Healthcheck           struct {
			Test              []string
			Interval, Timeout string
		}
		StopGracePeriod string   `yaml:"stop_grace_period"`
		MemLimit        string   `yaml:"mem_limit"`
		ReadOnly        bool     `yaml:"read_only"`
		CapDrop         []string `yaml:"cap_drop"`
		SecurityOpt     []string `yaml:"security_opt"`
	}

	kubernetesFile struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Metadata   struct{ Name string }
		Spec       struct {
			Replicas int
			Selector struct {
				MatchLabels map[string]string `yaml:"matchLabels"`
			}
			Template struct {
				Metadata struct{ Labels map[string]string }
				Spec     struct {
					TerminationGracePeriodSeconds int                   `yaml:"terminationGracePeriodSeconds"`
					InitContainers                []kubernetesContainer `yaml:"initContainers"`
					Containers                    []kubernetesContainer
					Volumes                       []struct {
						Name   string
						Secret struct {
							SecretName string `yaml:"secretName"`
						}
					}
				}
			}
		}
	}
	kubernetesContainer struct {
		Name, Image   string
		RestartPolicy string `yaml:"restartPolicy"`
		Env           []struct{ Name, Value string }
		VolumeMounts  []struct {
			Name      string
			MountPath string `yaml:"mountPath"`
			ReadOnly  bool   `yaml:"readOnly"`
		} `yaml:"volumeMounts"`
		StartupProbe    kubernetesProbe `yaml:"startupProbe"`
		LivenessProbe   kubernetesProbe `yaml:"livenessProbe"`
		Resources       struct{ Requests, Limits struct{ CPU, Memory string } }
		SecurityContext struct {
			RunAsNonRoot             bool `yaml:"runAsNonRoot"`
			ReadOnlyRootFilesystem   bool `yaml:"readOnlyRootFilesystem"`
			AllowPrivilegeEscalation bool `yaml:"allowPrivilegeEscalation"`
			Capabilities             struct{ Drop []string }
			SeccompProfile           struct{ Type string } `yaml:"seccompProfile"`
		} `yaml:"securityContext"`
	}
	kubernetesProbe struct {
		Exec             struct{ Command []string }
		PeriodSeconds    int `yaml:"periodSeconds"`
		TimeoutSeconds   int `yaml:"timeoutSeconds"`
		FailureThreshold int `yaml:"failureThreshold"`
	}
)

func readYAML(t *testing.T, path string, into any) {
	t.Helper()
	decoder := yaml.NewDecoder(strings.NewReader(celldtest.ReadFile(t, path)))
	decoder.KnownFields(true)
	if err := decoder.Decode(into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// healthCheck is the HEALTHCHECK of the Dockerfile.
func healthCheck(t *testing.T) (words []string) {
	t.Helper()
	line := regexp.MustCompile(`(?m)^HEALTHCHECK .*CMD (\[.*\])$`).FindStringSubmatch(celldtest.ReadFile(t, "../../Dockerfile"))
	if line == nil || json.Unmarshal([]byte(line[1]), &words) != nil {
		t.Fatalf("HEALTHCHECK %q", line)
	}
	return words
}

// contained is a celld that is process 1 of its own processes, with its own network, as in a container. 192.0.2.1 is its
// address there.
type contained struct {
	*harness.Server
	env []string
}

func startContained(t *testing.T, env []string, args ...string) contained {
	t.Helper()
	harness.NeedRoot(t)
	celldtest.Need(t, "ip")
	celldtest.Need(t, "nsenter")
	if out, err := harness.Command(t, "unshare", "-f", "-p", "-m", "-n", "true").CombinedOutput(); err != nil {
		celldtest.Missing(t, "no namespaces here: %v, %s", err, out)
	}
	const script = `mount --make-rprivate / && mount -t proc proc /proc && ip link set lo up && ip addr add 192.0.2.1/32 dev lo && shift 4 && exec "$0" "$@"` // without --port and --log-format of spec
	srv := harness.Spec{
		Wrap: []string{"sh", "-c", script}, Env: append(slices.Clone(env), "CELLD_LOG_FORMAT=json"), Flags: args,
		Sys: &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET},
	}.Start(t)
	return contained{srv, env}
}

// check runs a command of the image in the container, as Docker and Kubernetes do: with its environment, without its arguments.
func (c contained) check(t *testing.T, words []string) (out string, code int) {
	t.Helper()
	if words[0] != "/celld" {
		t.Fatalf("the image has no %s", words[0])
	}
	pid := strconv.Itoa(c.Cmd.Process.Pid)
	cmd := exec.Command("nsenter", append([]string{"-t", pid, "-p", "-n", "-m", "--", harness.Binary(t)}, words[1:]...)...)
	cmd.Env, cmd.Dir = append(harness.CleanEnv(), c.env...), c.Cmd.Dir
	text, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return string(text), cmd.ProcessState.ExitCode()
}

// TestHealthChecks runs the commands with which the Dockerfile, compose and Kubernetes check a container, in containers whose celld
// gets the same flags and environment.
func TestHealthChecks(t *testing.T) {
	t.Parallel()
	var compose composeFile
	var kubernetes kubernetesFile
	readYAML(t, "../../examples/compose.yaml", &compose)
	readYAML(t, "../../examples/kubernetes.yaml", &kubernetes)
	sidecar := kubernetes.Spec.Template.Spec.InitContainers[0]
	// The commands of lives exit with 0 for a celld that must not be killed, and those of serves for one that may be called.
	lives := [][]string{healthCheck(t), sidecar.LivenessProbe.Exec.Command}
	serves := [][]string{sidecar.StartupProbe.Exec.Command, compose.Services["celld"].Healthcheck.Test[1:]}

	dir := harness.SocketDir(t)
	socket := func(name string) string { return filepath.Join(dir, name) }
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, test := range []struct {
		name, args string
		env        []string
		meanwhile  func(*testing.T, contained) // something happens to the server
		says       string                      // "": it serves; else it lives, and says this
		dead       bool                        // it cannot be asked: both fail
		unready    string                      // it lives, and says this to who may wait for it
	}{
		{name: "as it is"},
		{name: "all addresses", args: "--bind 0.0.0.0,-::"},
		{name: "all addresses, by a variable", env: []string{"CELLD_BIND=* -::*"}},
		{name: "one that is missing", args: "--bind -192.0.2.9,127.0.0.1"},
		{name: "all but loopback", args: "--bind -192.0.2.9 --bind 192.0.2.1 --requirepass sesame"},
		{name: "all but loopback, by variables", env: []string{"CELLD_BIND=192.0.2.1", "CELLD_REQUIREPASS=sesame"}},
		{name: "three", args: "--bind 192.0.2.1,127.0.0.3 --bind localhost --protected-mode no"},
		{name: "only IPv6", args: "--bind ::1"},
		{name: "only IPv6, all", env: []string{"CELLD_BIND=::*"}},
		{name: "a name", args: "--bind localhost"},
		{name: "a port", args: "--port 7000"},
		{name: "a port, by a variable", env: []string{"CELLD_PORT=7000"}},
		{name: "a flag before its variable", args: "--port 7000", env: []string{"CELLD_PORT=7001", "CELLD_BIND=::1"}},
		{name: "a Service named celld", args: "--port 7000", env: []string{"CELLD_PORT=tcp://10.0.0.1:6379"}},
		{name: "only a unix socket", args: "--port 0 --unixsocket " + socket("a")},
		{name: "only a unix socket, by variables", env: []string{"CELLD_PORT=0", "CELLD_UNIXSOCKET=" + socket("b")}},
		{name: "a unix socket and a port", args: "--unixsocket " + socket("c") + " --port 7000"},
		{name: "a password's file", env: []string{"CELLD_REQUIREPASS_FILE=" + file("password", "sesame\n")}},
		{name: "any port", args: "--port 0", says: "--port 0", dead: true},
		{name: "protected mode keeps all out", args: "--bind 192.0.2.1", says: "-DENIED "},
		{
			name: "full", args: "--maxclients 1 --unixsocket " + socket("d"), says: "-ERR max number of clients reached",
			meanwhile: func(t *testing.T, c contained) { harness.Dial(t, "unix:"+c.UnixPath()).Do("PING") },
		},
		{
			name: "another password", args: "--requirepass sesame --unixsocket " + socket("e"), says: "-WRONGPASS ",
			meanwhile: func(t *testing.T, c contained) {
				client := harness.Dial(t, "unix:"+c.UnixPath())
				client.Do("AUTH", "sesame")
				client.Do("CONFIG", "SET", "requirepass", "another")
			},
		},
		{
			name: "policies that are wrong by now", args: "--policies " + file("policies", "api 10/1s\n"),
			meanwhile: func(*testing.T, contained) { file("policies", "nonsense\n") },
		},
		{
			name: "a shutdown delay", args: "--shutdown-delay 3600", unready: "not ready: the server is stopping",
			meanwhile: func(t *testing.T, c contained) {
				c.Cmd.Process.Signal(syscall.SIGTERM)
				celldtest.Eventually(t, "the delay begins", func() bool {
					return strings.Contains(c.Log.String(), "after the shutdown delay")
				})
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if strings.Contains(test.args+strings.Join(test.env, " "), "::1") {
				harness.NeedIPv6(t)
			}
			c := startContained(t, test.env, strings.Fields(test.args)...)
			if test.meanwhile != nil {
				test.meanwhile(t, c)
			}
			for _, words := range lives {
				out, code := c.check(t, words)
				if (code == 0) == test.dead || !strings.Contains(out, test.says) || test.says == "" && out != "" {
					t.Errorf("%q: %d, %q; want that it lives, and %q", words, code, out, test.says)
				}
			}
			says := cmp.Or(test.says, test.unready)
			for _, words := range serves {
				if out, code := c.check(t, words); (code == 0) != (says == "") || !strings.Contains(out, says) || says == "" && out != "" {
					t.Errorf("%q: %d, %q; want that it serves, or %q", words, code, out, says)
				}
			}
		})
	}
}

// bytesOf reads what Kubernetes and Docker mean by 256Mi and 256m.
func bytesOf(t *testing.T, text string) int {
	t.Helper()
	digits, found := strings.CutSuffix(text, "Mi")
	if !found {
		digits, found = strings.CutSuffix(text, "m")
	}
	n, err := strconv.Atoi(digits)
	if err != nil || !found {
		t.Fatalf("memory %q", text)
	}
	return n << 20
}

// reaches checks that a program with this URL finds a celld that listens on these addresses of a host.
func reaches(t *testing.T, limiter, host string, srv contained) {
	t.Helper()
	options, err := redis.ParseURL(limiter)
	if err != nil {
		t.Fatal(err)
	}
	wantHost, port := harness.HostPort(options.Addr)
	if wantHost != host {
		t.Errorf("RATE_LIMITER is at %s, want %s", wantHost, host)
	}
	words := []string{"/celld", "ready", "--bind", "192.0.2.1", "--port", port}
	if host == "127.0.0.1" {
		words[3] = host
	}
	if options.Password != "" {
		words = append(words, "--requirepass", options.Password)
	}
	bare := contained{srv.Server, nil} // what the app's container knows is the URL
	if out, code := bare.check(t, words); code != 0 {
		t.Errorf("%s: %d, %s", limiter, code, out)
	}
}

// TestKubernetesExample holds examples/kubernetes.yaml to what makes a sidecar, and runs its celld.
func TestKubernetesExample(t *testing.T) {
	t.Parallel()
	var file kubernetesFile
	readYAML(t, "../../examples/kubernetes.yaml", &file)
	pod := file.Spec.Template.Spec
	if file.APIVersion != "apps/v1" || file.Kind != "Deployment" ||
		!maps.Equal(file.Spec.Selector.MatchLabels, file.Spec.Template.Metadata.Labels) || len(pod.InitContainers) != 1 ||
		len(pod.Containers) != 1 {
		t.Fatalf("%+v", file)
	}
	celld, app := pod.InitContainers[0], pod.Containers[0]
	if celld.RestartPolicy != "Always" || celld.Image != "celld" {
		t.Errorf("no sidecar: %+v", celld)
	}
	s := celld.SecurityContext
	if !s.RunAsNonRoot || !s.ReadOnlyRootFilesystem || s.AllowPrivilegeEscalation || !slices.Equal(s.Capabilities.Drop, []string{"ALL"}) ||
		s.SeccompProfile.Type != "RuntimeDefault" {
		t.Errorf("what the pod security standard calls restricted is not met: %+v", s)
	}
	for _, probe := range []kubernetesProbe{celld.StartupProbe, celld.LivenessProbe} {
		if probe.TimeoutSeconds < 4 { // 1 by default, and celld ping waits for 3
			t.Errorf("%+v", probe)
		}
	}
	limit := bytesOf(t, celld.Resources.Limits.Memory)
	if limit != 256<<20 || bytesOf(t, celld.Resources.Requests.Memory) > limit { // TestContainer floods one of that size
		t.Errorf("%+v", celld.Resources)
	}
	if pod.TerminationGracePeriodSeconds < 40 { // 30 for the app, 10 for celld
		t.Errorf("terminationGracePeriodSeconds: %d", pod.TerminationGracePeriodSeconds)
	}
	var env []string
	for _, v := range celld.Env {
		env = append(env, v.Name+"="+v.Value)
	}
	srv := startContained(t, env)
	for _, probe := range []kubernetesProbe{celld.StartupProbe, celld.LivenessProbe} {
		if out, code := srv.check(t, probe.Exec.Command); code != 0 || out != "" {
			t.Errorf("%q: %d, %s", probe.Exec.Command, code, out)
		}
	}
	if len(app.Env) != 1 || app.Env[0].Name != "RATE_LIMITER" {
		t.Fatalf("%+v", app.Env)
	}
	reaches(t, app.Env[0].Value, "127.0.0.1", srv)
}

// TestComposeExample holds examples/compose.yaml to the order of start and stop, and runs its celld.
func TestComposeExample(t *testing.T) {
	t.Parallel()
	var file composeFile
	readYAML(t, "../../examples/compose.yaml", &file)
	celld, app := file.Services["celld"], file.Services["app"]
	if len(file.Services) != 2 || app.DependsOn["celld"].Condition != "service_healthy" || len(celld.DependsOn) != 0 {
		t.Errorf("the order of start and stop: %+v, %+v", app.DependsOn, celld.DependsOn)
	}
	if !slices.Equal(celld.Networks, []string{"limiter"}) || !file.Networks["limiter"].Internal ||
		!slices.Contains(app.Networks, "limiter") {
		t.Errorf("networks: %q, %q, %+v", app.Networks, celld.Networks, file.Networks)
	}
	if !celld.ReadOnly || !slices.Equal(celld.CapDrop, []string{"ALL"}) ||
		!slices.Equal(celld.SecurityOpt, []string{"no-new-privileges:true"}) {
		t.Errorf("%+v", celld)
	}
	if grace, err := strconv.Atoi(strings.TrimSuffix(celld.StopGracePeriod, "s")); err != nil || grace <= 10 {
		t.Errorf("stop_grace_period %q is not above --shutdown-timeout", celld.StopGracePeriod)
	}
	if limit := bytesOf(t, celld.MemLimit); limit != 256<<20 { // as above
		t.Errorf("mem_limit %q", celld.MemLimit)
	}
	build := filepath.Join("../../examples", celld.Build, "Dockerfile")
	if celldtest.ReadFile(t, build) == "" || len(celld.Healthcheck.Test) == 0 || celld.Healthcheck.Test[0] != "CMD" {
		t.Errorf("%q, %q", build, celld.Healthcheck.Test)
	}
	const password = "Sesame123"
	given := func(text string) string { // as compose fills in ${CELLD_PASSWORD:?message}
		return regexp.MustCompile(`\$\{CELLD_PASSWORD:\?[^}]*\}`).ReplaceAllString(text, password)
	}
	var env []string
	for name, value := range celld.Environment {
		env = append(env, name+"="+given(value))
	}
	srv := startContained(t, env)
	for _, words := range [][]string{celld.Healthcheck.Test[1:], healthCheck(t)} {
		if out, code := srv.check(t, words); code != 0 || out != "" {
			t.Errorf("%q: %d, %s", words, code, out)
		}
	}
	limiter := given(app.Environment["RATE_LIMITER"])
	if u, err := url.Parse(limiter); err != nil || u.User == nil {
		t.Errorf("RATE_LIMITER %q: %v", limiter, err)
	}
	reaches(t, limiter, "celld", srv)
}

// TestDocsOfExamples holds the parts of the two files that docs/how-to/deploy.md shows to the files.
func TestDocsOfExamples(t *testing.T) {
	t.Parallel()
	message := regexp.MustCompile(`:\?[^}]*}`)
	parse := func(text string) (tree map[string]any) {
		t.Helper()
		if err := yaml.Unmarshal([]byte(message.ReplaceAllString(text, ":?}")), &tree); err != nil {
			t.Fatal(err)
		}
		return tree
	}
	parts := blocks(celldtest.ReadFile(t, "../../docs/how-to/deploy.md"), "yaml")
	if len(parts) != 2 {
		t.Fatalf("docs/how-to/deploy.md has %d parts of YAML files", len(parts))
	}
	partOf(t, "services", parse(parts[0]), parse(celldtest.ReadFile(t, "../../examples/compose.yaml")))
	pod := parse(celldtest.ReadFile(t, "../../examples/kubernetes.yaml"))
	for _, name := range []string{"spec", "template", "spec"} {
		pod = pod[name].(map[string]any)
	}
	partOf(t, "initContainers", parse(parts[1]), pod)
}

// partOf checks that the whole has all that the part has.
func partOf(t *testing.T, where string, part, whole any) {
	t.Helper()
	switch part := part.(type) {
	case map[string]any:
		other, _ := whole.(map[string]any)
		for name, value := range part {
			partOf(t, where+"."+name, value, other[name])
		}
	case []any:
		other, _ := whole.([]any)
		if len(other) != len(part) {
			t.Errorf("%s: %v, want %v", where, other, part)
			return
		}
		for i, value := range part {
			partOf(t, where+"."+strconv.Itoa(i), value, other[i])
		}
	default:
		if part != whole {
			t.Errorf("%s: %v on the page, %v in the file", where, part, whole)
		}
	}
}
