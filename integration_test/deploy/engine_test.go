package deploy

import (
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// enginePassword is the password in the examples.
const enginePassword = "Sesame456"

// nearby is an example's --store as a contained celld gets it: the engine is beside it, on another port than its own.
func nearby(t *testing.T, url string) string {
	t.Helper()
	if url != "redis://engine:6379" {
		t.Errorf("CELLD_STORE %q", url)
	}
	return "redis://192.0.2.1:6380"
}

// sharesLimits runs the engine of an example beside its celld, by redis-server in place of valkey-server. The probe passes before there
// is an engine, and then the limits are there.
func sharesLimits(t *testing.T, c contained, probe, engine []string) {
	t.Helper()
	inside := []string{"nsenter", "-t", strconv.Itoa(c.Cmd.Process.Pid), "-n", "--"}
	run := func(words ...string) string {
		cmd := harness.Command(t, inside[0], slices.Concat(inside[1:], words)...)
		cmd.Env = append(harness.CleanEnv(), "REDISCLI_AUTH="+enginePassword)
		out, _ := cmd.CombinedOutput()
		return string(out)
	}
	if out, code := c.check(t, probe); code != 0 || out != "" {
		t.Errorf("%q without an engine: %d, %s", probe, code, out)
	}
	if out, code := c.check(t, []string{"/celld", "ready"}); code != 1 {
		t.Errorf("ready without an engine: %d, %s", code, out)
	}
	if engine[0] != "valkey-server" {
		t.Fatalf("%q", engine)
	}
	dir := t.TempDir()
	words := slices.Concat(inside, []string{celldtest.Need(t, "redis-server")}, engine[1:],
		[]string{"--port", "6380", "--bind", "192.0.2.1", "--dir", dir})
	cli := []string{celldtest.Need(t, "redis-cli"), "-h", "192.0.2.1", "-p", "6380", "-e"}
	celldtest.RunPeer(t, "the engine", dir, exec.Command(words[0], words[1:]...), func() bool {
		return run(append(cli, "ping")...) == "PONG\n"
	})
	celldtest.Eventually(t, "celld is ready", func() bool {
		_, code := c.check(t, []string{"/celld", "ready"})
		return code == 0
	})
	_, port := harness.HostPort(c.Addr)
	run(cli[0], "-h", "192.0.2.1", "-p", port, "-a", "Sesame123", "CL.THROTTLE", "k", "15", "30", "60")   // with a password
	run(cli[0], "-h", "127.0.0.1", "-p", port, "--no-auth-warning", "CL.THROTTLE", "k", "15", "30", "60") // without one
	if got := run(append(cli, "--scan", "--pattern", "*k")...); got != "limits:k\n" {
		t.Errorf("on the engine: %q", got)
	}
	for name, want := range map[string]string{"maxmemory-policy": "noeviction", "appendonly": "yes", "hash-max-listpack-value": "512"} {
		if got := run(append(cli, "config", "get", name)...); got != name+"\n"+want+"\n" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestComposeEngineExample holds examples/compose-engine.yaml to examples/compose.yaml, and runs its celld and its engine.
func TestComposeEngineExample(t *testing.T) {
	t.Parallel()
	var file, alone composeFile
	readYAML(t, "../../examples/compose-engine.yaml", &file)
	readYAML(t, "../../examples/compose.yaml", &alone)
	celld, engine := file.Services["celld"], file.Services["engine"]
	if celld.DependsOn["engine"].Condition != "service_healthy" || !slices.Contains(celld.Networks, "engine") ||
		!slices.Equal(engine.Networks, []string{"engine"}) {
		t.Errorf("%+v, %+v", celld, engine)
	}
	if !slices.Equal(engine.Healthcheck.Test, []string{"CMD", "valkey-cli", "-e", "ping"}) {
		t.Errorf("%+v", engine.Healthcheck)
	}
	passwords := map[string]string{"CELLD_PASSWORD": "Sesame123", "ENGINE_PASSWORD": enginePassword}
	given := func(text string) string { // as compose fills in ${CELLD_PASSWORD:?message}
		return regexp.MustCompile(`\$\{(\w+):\?[^}]*\}`).ReplaceAllStringFunc(text, func(found string) string {
			return passwords[strings.TrimPrefix(found[:strings.Index(found, ":")], "${")]
		})
	}
	env := []string{"CELLD_STORE=" + nearby(t, celld.Environment["CELLD_STORE"])}
	for name, value := range celld.Environment {
		if name != "CELLD_STORE" {
			env = append(env, name+"="+given(value))
		}
	}
	command := slices.Clone(engine.Command)
	for i := range command {
		command[i] = given(command[i])
	}
	if given(engine.Environment["REDISCLI_AUTH"]) != enginePassword {
		t.Errorf("%v", engine.Environment)
	}
	sharesLimits(t, startContained(t, env), celld.Healthcheck.Test[1:], command)
	lone := alone.Services["celld"]
	celld.Environment, celld.DependsOn = lone.Environment, lone.DependsOn
	celld.Networks, celld.Healthcheck.Test = lone.Networks, lone.Healthcheck.Test
	if !reflect.DeepEqual(celld, lone) || !reflect.DeepEqual(file.Services["app"], alone.Services["app"]) {
		t.Errorf("%+v differs in more from %+v", file, alone)
	}
}

// TestKubernetesEngineExample holds examples/kubernetes-engine.yaml to examples/kubernetes.yaml, and runs its celld and its engine.
func TestKubernetesEngineExample(t *testing.T) {
	t.Parallel()
	const path = "../../examples/kubernetes-engine.yaml"
	var file, alone kubernetesFile
	readYAML(t, path, &file)
	readYAML(t, "../../examples/kubernetes.yaml", &alone)
	pod := file.Spec.Template.Spec
	celld, lone := pod.InitContainers[0], alone.Spec.Template.Spec.InitContainers[0]
	if len(pod.Volumes) != 1 || len(celld.VolumeMounts) != 1 || pod.Volumes[0].Name != celld.VolumeMounts[0].Name ||
		pod.Volumes[0].Secret.SecretName != "engine" {
		t.Fatalf("%+v, %+v", pod.Volumes, celld.VolumeMounts)
	}
	same := celld
	same.Env, same.VolumeMounts, same.StartupProbe.Exec = lone.Env, nil, lone.StartupProbe.Exec
	if !reflect.DeepEqual(same, lone) || file.Spec.Replicas < 2 {
		t.Errorf("%+v differs in more from %+v", file, alone)
	}
	password := filepath.Join(t.TempDir(), "password")
	celldtest.WriteFile(t, enginePassword, password)
	var env []string
	for _, v := range celld.Env {
		switch v.Name {
		case "CELLD_STORE":
			v.Value = nearby(t, v.Value)
		case "CELLD_STORE_PASSWORD_FILE":
			if v.Value != celld.VolumeMounts[0].MountPath+"/password" {
				t.Errorf("the password is in %s", v.Value)
			}
			v.Value = password
		}
		env = append(env, v.Name+"="+v.Value)
	}

	type document struct {
		Kind     string
		Metadata struct{ Name string }
		Spec     struct {
			Selector, Ports any
			ServiceName     string `yaml:"serviceName"`
			Template        struct {
				Metadata struct{ Labels map[string]string }
				Spec     struct {
					Containers []struct {
						Args         []string
						VolumeMounts []struct{ Name string } `yaml:"volumeMounts"`
					}
				}
			}
			VolumeClaimTemplates []struct{ Metadata struct{ Name string } } `yaml:"volumeClaimTemplates"`
		}
	}
	var kinds []string
	var set document
	decoder := yaml.NewDecoder(strings.NewReader(celldtest.ReadFile(t, path)))
	for {
		var d document
		if decoder.Decode(&d) != nil {
			break
		}
		kinds, set = append(kinds, d.Kind+" "+d.Metadata.Name), d
	}
	if !slices.Equal(kinds, []string{"Deployment app", "Service engine", "StatefulSet engine"}) || set.Spec.ServiceName != "engine" ||
		set.Spec.Template.Metadata.Labels["app"] != "engine" {
		t.Fatalf("%q, %+v", kinds, set)
	}
	engine := set.Spec.Template.Spec.Containers[0]
	if len(engine.VolumeMounts) != 1 || engine.VolumeMounts[0].Name != set.Spec.VolumeClaimTemplates[0].Metadata.Name {
		t.Errorf("%+v", set)
	}
	for i := range engine.Args {
		engine.Args[i] = strings.ReplaceAll(engine.Args[i], "$(PASSWORD)", enginePassword) // as Kubernetes does
	}
	sharesLimits(t, startContained(t, env), celld.StartupProbe.Exec.Command, engine.Args)
}
