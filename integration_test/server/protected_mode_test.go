package server

import (
	"strings"
	"testing"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// TestProtectedMode starts celld in a network of its own, in which 192.0.2.1 is an address beyond loopback.
func TestProtectedMode(t *testing.T) {
	t.Parallel()
	harness.NeedRoot(t)
	for _, tool := range []string{"unshare", "ip", "redis-cli"} {
		celldtest.Need(t, tool)
	}
	if out, err := harness.Command(t, "unshare", "-n", "true").CombinedOutput(); err != nil {
		celldtest.Missing(t, "no network namespaces here: %v, %s", err, out)
	}
	const served, denied = "PONG", "DENIED celld is running in protected mode"
	for _, test := range []struct {
		name, flags, auth string
		outside, loopback string // how an answer starts
	}{
		{"no password", "--bind 0.0.0.0", "", denied, served},
		{"IPv6 too", "--bind 0.0.0.0,-::", "", denied, served},
		{"password", "--bind 0.0.0.0 --requirepass sesame", "-a sesame --no-auth-warning", served, served},
		{"password, not given", "--bind 0.0.0.0 --requirepass sesame", "", "NOAUTH", "NOAUTH"},
		{"switched off", "--bind 0.0.0.0 --protected-mode no", "", served, served},
		{"bound to it alone", "--bind 192.0.2.1", "", denied, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			// One shell starts celld in the namespace, asks it from both sides and ends it.
			script := `
				ip link set lo up && ip addr add 192.0.2.1/32 dev lo || exit 9
				"$0" --port 6379 --loglevel verbose ` + test.flags + ` 2>"$1" & pid=$!
				until grep -q ready "$1"; do kill -0 $pid || exit 8; sleep 0.02; done
				echo "outside $(redis-cli -h 192.0.2.1 ` + test.auth + ` PING 2>&1)"
				echo "loopback $(redis-cli -h 127.0.0.1 ` + test.auth + ` PING 2>&1)"
				kill $pid && wait $pid && cat "$1"`
			cmd := harness.Command(t, "unshare", "-n", "sh", "-c", script, harness.Binary(t), t.TempDir()+"/log")
			cmd.Env = harness.CleanEnv()
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if told := strings.Contains(string(out), `msg="a connection is refused" client=192.0.2.1:`); told != (test.outside == denied) {
				t.Errorf("celld %s\n%swho was refused is in the log: %v", test.flags, out, told)
			}
			if !strings.Contains(string(out), "outside "+test.outside) || !strings.Contains(string(out), "loopback "+test.loopback) {
				t.Errorf("celld %s\n%swant outside %s, loopback %s", test.flags, out, test.outside, test.loopback)
			}
		})
	}
}
