package link

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"celld/internal/celldtest"
)

// Names of hosts may have letters, digits, dots, dashes and underlines, and nothing beside these.
func TestHosts(t *testing.T) {
	for _, r := range "azAZ09.-_" {
		if notInName(r) {
			t.Errorf("%q is in no name", r)
		}
	}
	for _, r := range "`{@[/:,+ \x00é" {
		if !notInName(r) {
			t.Errorf("%q is in a name", r)
		}
	}
	for text, want := range map[string]string{
		"unix:///a%zz": "%25", "redis://h?master=%zz": "%25", "redis://[%zz]": "%25", "redis://h?master=%00": "%00", "unix:///a%00": "%00",
		"redis://h/2147483648":    "number",
		"redis://h?server-name=x": "options", "unix:///a?db=1&db=2": "twice",
	} {
		if _, err := ParseURL(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if a, err := ParseURL("redis://h:65535/2147483647"); err != nil || a.DB != 2147483647 || a.Hosts[0] != "h:65535" {
		t.Errorf("%+v, %v", a, err)
	}
}

// What no waiting mends is told apart from an engine that is away.
func TestMistakes(t *testing.T) {
	certificate := &tls.CertificateVerificationError{Err: errors.New("unknown authority")}
	for i, c := range []struct {
		err  error
		want string
	}{
		{nil, ""}, {errors.New("other"), ""}, {context.DeadlineExceeded, ""}, {&net.OpError{Op: "read", Err: errors.New("x")}, ""},
		{&dialError{certificate}, "celld refuses the engine's certificate: unknown authority"},
		{&net.OpError{Op: "remote error", Err: errors.New("bad certificate")}, "the engine refuses the connection: bad certificate"},
		{fmt.Errorf("dial: %w", tls.RecordHeaderError{}), "the engine does not speak TLS"},
	} {
		if got := mistake(c.err, address{}); got != c.want {
			t.Errorf("%d: %q", i, got)
		}
	}
	e := celldtest.NewAiling(t)
	s := newTestLink(t, e.Socket, Options{})
	client := *s.client.Load()
	for answer, want := range map[string]string{
		"_\r\n": "know no master", "-ERR No such master with that name\r\n": "know no master", "-ERR odd\r\n": "",
	} {
		e.Answers(answer)
		err := client.Do(t.Context(), client.B().Get().Key("k").Build()).Error()
		if got := mistake(err, address{Master: "m"}); !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("%q: %q", answer, got)
		}
		if got := mistake(err, address{}); answer == "_\r\n" && got != "" {
			t.Errorf("%q without Sentinels: %q", answer, got)
		}
	}
}

// A node that was connected to is noted once, up to a bound, until it is looked at.
func TestDialedNodes(t *testing.T) {
	var d dialed
	for i := range mostDialed + 5 {
		d.add(fmt.Sprint(i))
		d.add("0")
	}
	if n := len(d.drain()); n != mostDialed {
		t.Errorf("%d", n)
	}
	if d.drain() != nil {
		t.Error("they are told twice")
	}
	if d.add("a"); !slices.Equal(d.drain(), []string{"a"}) {
		t.Error("a new one")
	}
}

// In a Cluster any node that answers will do, and if none does the first error is told.
func TestPingOfACluster(t *testing.T) {
	s, _ := aCluster(t, Options{}, "h:1", "h:2")
	client := *s.client.Load()
	if err := s.ping(client); err != nil {
		t.Error(err)
	}
	all := client.Nodes()
	all["h:2"].Close()
	if err := s.ping(manyNodes{all["h:2"], all}); err != nil {
		t.Errorf("one answers: %v", err)
	}
	all["h:1"].Close()
	if err := s.ping(client); err == nil {
		t.Error("none answers")
	}
}
