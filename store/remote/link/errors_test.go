package link

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/rueidis"

	"celld/store"

	"celld/internal/celldtest"
)

// fakeError returns what rueidis makes of an error's line.
func fakeError(t *testing.T, client rueidis.Client, line string) error {
	t.Helper()
	err := client.Do(context.Background(), client.B().Arbitrary("SAY", line).Build()).Error()
	if err == nil {
		t.Fatalf("%q: no error", line)
	}
	return err
}

// Errors of an engine that say that nothing was done are DownErrors with Sent false, in the forms of Redis 7 and 6.2.
func TestClassify(t *testing.T) {
	fake := celldtest.NewAilingAt(t, "127.0.0.1:0", func(command string) string {
		if line, ok := strings.CutPrefix(command, "SAY "); ok {
			return "-" + line + "\r\n"
		}
		return ""
	})
	s := openLink(t, Options{URL: "redis://" + fake.Socket})
	client := *s.client.Load()
	down := func(cause string) error { return &DownError{Cause: cause} }
	moved := &DownError{Cause: "the Cluster was moving the key", Sent: true}
	const in7, in62 = " script: 8a5f, on @user_script:4.", "ERR Error running script (call to f_8a5f): @user_script:4: "
	for line, want := range map[string]error{
		"READONLY You can't write against a read only replica.":                                            down("the engine is a read-only replica"),
		"READONLY You can't write against a read only replica." + in7:                                      down("the engine is a read-only replica"),
		in62 + "@user_script: 4: -READONLY You can't write against a read only replica.":                   down("the engine is a read-only replica"),
		"LOADING Redis is loading the dataset in memory":                                                   down("the engine is loading its data"),
		"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.":           down("the engine is busy with a script"),
		"CLUSTERDOWN Hash slot not served":                                                                 down("the Cluster is down"),
		"CLUSTERDOWN The cluster is down":                                                                  down("the Cluster is down"),
		"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.":                 down("the engine has lost its master"),
		"NOREPLICAS Not enough good replicas to write.":                                                    down("the engine has too few replicas to write"),
		in62 + "-NOREPLICAS Not enough good replicas to write.":                                            down("the engine has too few replicas to write"),
		"TRYAGAIN Multiple keys request during rehashing of slot":                                          down("the Cluster is moving the key"),
		"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.": down("the engine cannot write to its disk"),
		"NOAUTH Authentication required.":                                                                  down("the engine wants a password"),
		"WRONGPASS invalid username-password pair or user is disabled.":                                    down("the engine refuses the password"),
		"NOPERM this user has no permissions to run the 'evalsha' command": down(
			"the engine's user lacks a permission: this user has no permissions to run the 'evalsha' command"),
		"ACL failure in script: User celld has no permissions to run the 'set' command" + in7: down(
			"the engine's user lacks a permission: ACL failure in script: User celld has no permissions to run the 'set' command" + in7),
		"MOVED 3999 127.0.0.1:6381":         down("the Cluster has moved the key"),
		"ERR max number of clients reached": down("the engine has no room for a connection"),

		"ERR Script attempted to access a non local key in a cluster node" + in7:                 moved,
		in62 + "Script attempted to access a non local key in a cluster node":                    moved,
		"ERR Attempted to access a non local key in a cluster node script: on @user_script:131.": moved,
		"OOM command not allowed when used memory > 'maxmemory'.":                                store.ErrFull,
		"OOM command not allowed when used memory > 'maxmemory'." + in7:                          store.ErrFull,
		in62 + "@user_script: 4: -OOM command not allowed when used memory > 'maxmemory'.":       store.ErrFull,
		"WRONGTYPE Operation against a key holding the wrong kind of value":                      store.ErrWrongType,
		in62 + "WRONGTYPE Operation against a key holding the wrong kind of value":               store.ErrWrongType,
		"WRONGTYPE Operation against a key holding the wrong kind of value" + in7:                store.ErrWrongType,
		"ERR value is not an integer or out of range":                                            nil,
		"CROSSSLOT Keys in request don't hash to the same slot":                                  nil,
		"ERR Script attempted to access keys that do not hash to the same slot":                  nil,
		in62 + "ERR unknown":                            nil,
		"ERR Error running script (call to f_":          nil,
		"NOSCRIPT No matching script. Please use EVAL.": nil,
		"READONLYX now":                                 nil,
	} {
		err := fakeError(t, client, line)
		got := Classify(err)
		if want == nil {
			want = &EngineError{Text: line}
		}
		if fmt.Sprintf("%T %+v", got, got) != fmt.Sprintf("%T %+v", want, want) {
			t.Errorf("%s: %#v, want %#v", line, got, want)
		}
		if d := (*DownError)(nil); errors.As(got, &d) && d.Sent && want != error(moved) {
			t.Errorf("%s: says that it may have been counted", line)
		}
		if errors.Is(got, errNoScript) != strings.HasPrefix(line, "NOSCRIPT") {
			t.Errorf("%s: is of no script: %v", line, errors.Is(got, errNoScript))
		}
	}
	if !errors.Is(Classify(fakeError(t, client, "ERR syntax error")), ErrSyntax) ||
		!errors.Is(Classify(fakeError(t, client, "ERR unknown type name 'x'")), ErrUnknownType) {
		t.Error("a syntax error is not recognised")
	}
}

// Without an answer, only a connection that was not made is certain.
func TestClassifyConnections(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: &os.SyscallError{Syscall: "connect", Err: syscall.ECONNREFUSED}}
	for _, test := range []struct {
		err   error
		cause string
		sent  bool
	}{
		{&dialError{refused}, causeAway, false},
		{&dialError{os.ErrDeadlineExceeded}, causeAway, false},
		{rueidis.ErrNoSlot, causeNoNode, false},
		{context.DeadlineExceeded, CauseTimeout, true},
		{os.ErrDeadlineExceeded, CauseTimeout, true},
		{&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, CauseTimeout, true},
		{&net.OpError{Op: "read", Err: syscall.ECONNRESET}, causeLost, true},
		{io.EOF, causeLost, true},
		{io.ErrUnexpectedEOF, causeLost, true},
		{net.ErrClosed, causeLost, true},
		{rueidis.ErrClosing, causeLost, true},
		{errors.New("some other"), "some other", true},
	} {
		d := (*DownError)(nil)
		if got := Classify(test.err); !errors.As(got, &d) || d.Cause != test.cause || d.Sent != test.sent {
			t.Errorf("%v: %+v", test.err, got)
		}
	}
	known := &DownError{Cause: "x", Sent: true}
	if Classify(known) != error(known) || Classify(nil) != nil {
		t.Error("a DownError and no error are not as they were")
	}
}
