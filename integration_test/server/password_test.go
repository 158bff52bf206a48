package server

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"celld/integration_test/harness"
)

// TestPassword gives the password in each way, and looks for it where others could see it.
func TestPassword(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("open sesame\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name    string
		spec    harness.Spec
		visible bool
	}{
		{"flag", harness.Spec{Flags: []string{"--requirepass", "open sesame"}}, true}, // unless celld hides it
		{"file", harness.Spec{Flags: []string{"--requirepass-file", file}}, false},
		{"environment", harness.Spec{Env: []string{"CELLD_REQUIREPASS=open sesame"}}, false},
		{"file named by the environment", harness.Spec{Env: []string{"CELLD_REQUIREPASS_FILE=" + file}}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			srv := test.spec.Start(t)
			cmdline, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(srv.Cmd.Process.Pid), "cmdline"))
			if err != nil {
				t.Fatal(err)
			}
			if !test.visible && bytes.Contains(cmdline, []byte("sesame")) {
				t.Errorf("the password is in %q", cmdline)
			}
			c := harness.Dial(t, srv.Addr)
			for _, step := range []struct {
				args []string
				want string
			}{
				{[]string{"PING"}, "-NOAUTH Authentication required.\r\n"},
				{[]string{"CL.THROTTLE", "k", "15", "30", "60"}, "-NOAUTH Authentication required.\r\n"},
				{[]string{"SHUTDOWN"}, "-NOAUTH Authentication required.\r\n"},
				{[]string{"AUTH", "sesame"}, "-WRONGPASS invalid username-password pair or user is disabled.\r\n"},
				{[]string{"AUTH", "open sesame "}, "-WRONGPASS invalid username-password pair or user is disabled.\r\n"},
				{[]string{"AUTH", "nobody", "open sesame"}, "-WRONGPASS invalid username-password pair or user is disabled.\r\n"},
				{[]string{"PING"}, "-NOAUTH Authentication required.\r\n"},
				{[]string{"AUTH", "open sesame"}, "+OK\r\n"},
				{[]string{"CL.THROTTLE", "k", "15", "30", "60"}, harness.FiveReplies("0 16 15 -1 2")[0]},
				{[]string{"CONFIG", "SET", "requirepass", "changed"}, "+OK\r\n"},
				{[]string{"PING"}, "+PONG\r\n"},
				{[]string{"AUTH", "open sesame"}, "-WRONGPASS invalid username-password pair or user is disabled.\r\n"},
				{[]string{"AUTH", "default", "changed"}, "+OK\r\n"},
			} {
				if got := c.Do(step.args...); got != step.want {
					t.Errorf("%q: %q, want %q", step.args, got, step.want)
				}
			}
			if bytes.Contains([]byte(srv.Log.String()), []byte("sesame")) {
				t.Errorf("the password is in the log: %s", srv.Log)
			}
		})
	}
}

// TestPasswordIsKeptSecret looks where commands are shown to others.
func TestPasswordIsKeptSecret(t *testing.T) {
	t.Parallel()
	srv := harness.Start(t, "--requirepass", "sesame", "--slowlog-log-slower-than", "0")
	admin, c := harness.Dial(t, srv.Addr), harness.Dial(t, srv.Addr)
	admin.Do("AUTH", "sesame")
	monitor := harness.Dial(t, srv.Addr)
	monitor.Do("AUTH", "sesame")
	if got := monitor.Do("MONITOR"); got != "+OK\r\n" {
		t.Fatal(got)
	}
	c.Do("AUTH", "sesame")
	c.Do("HELLO", "2", "AUTH", "default", "sesame")
	c.Do("CONFIG", "SET", "requirepass", "sesame2")
	c.Do("ECHO", "the end")
	for {
		line := monitor.Reply()
		if bytes.Contains([]byte(line), []byte("sesame")) {
			t.Errorf("MONITOR shows %s", line)
		}
		if bytes.Contains([]byte(line), []byte("the end")) {
			break
		}
	}
	for _, args := range [][]string{{"SLOWLOG", "GET", "-1"}, {"CLIENT", "LIST"}, {"INFO", "everything"}} {
		if got := admin.Do(args...); bytes.Contains([]byte(got), []byte("sesame")) {
			t.Errorf("%q shows %s", args, got)
		}
	}
}

func TestPasswordFileFaults(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	empty, good := filepath.Join(dir, "empty"), filepath.Join(dir, "good")
	os.WriteFile(empty, []byte("\n"), 0o600)
	os.WriteFile(good, []byte("sesame\r\n"), 0o600)
	for _, test := range []struct {
		flags []string
		names string
	}{
		{[]string{"--requirepass-file", filepath.Join(dir, "nosuch")}, "nosuch"},
		{[]string{"--requirepass-file", dir}, dir},
		{[]string{"--requirepass-file", empty}, empty},
		{[]string{"--requirepass-file", good, "--requirepass", "x"}, "requirepass-file"},
	} {
		_, stderr, code := harness.RunToEnd(t, nil, append(test.flags, "--port", "0")...)
		oneLine(t, stderr, code, 2, test.names)
	}
	srv := harness.Start(t, "--requirepass-file", good)
	if got := harness.Dial(t, srv.Addr).Do("AUTH", "sesame"); got != "+OK\r\n" {
		t.Errorf("a password file with CRLF: %q", got)
	}
}
