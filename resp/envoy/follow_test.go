package envoy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"celld/internal/celldtest"
	"celld/resp/envoy/domains"
	"celld/resp/envoy/message"
	"celld/resp/envoy/xds"
	"celld/resp/metrics"
)

// toldOf is a DiscoveryResponse with a domain of one descriptor for each name; "" is a mistake.
func toldOf(version string, names ...string) []byte {
	field := func(b []byte, n protowire.Number, value string) []byte {
		return protowire.AppendString(protowire.AppendTag(b, n, protowire.BytesType), value)
	}
	data := field(nil, 1, version)
	for _, name := range names {
		descriptor := field(field(nil, 1, "k"), 3, "\b\x01\x10\x05") // 5 a second
		config := field(field(field(nil, 1, "the "+name), 2, name), 3, string(descriptor))
		data = field(data, 2, string(field(field(nil, 1, "type.googleapis.com/"+domains.MessageName), 2, string(config))))
	}
	return data
}

// newFollower is a follower of a server that never answers.
func newFollower(t *testing.T, keep string) (*follower, *celldtest.LogBuffer) {
	d, log := newPort(t, "")
	return &follower{port: d, options: XDS{Keep: keep}, client: xds.New(xds.Options{})}, log
}

// tells passes a response on, and returns its error.
func (w *follower) tells(t *testing.T, data []byte) string {
	t.Helper()
	d, err := message.UnmarshalDiscovery(data)
	if err == nil {
		_, err = w.take(d, data)
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// Each world replaces the one before as a whole, or nothing.
func TestWorldsReplaceWorlds(t *testing.T) {
	w, _ := newFollower(t, "")
	has := func(want string) {
		t.Helper()
		got := ""
		for _, name := range []string{"a", "b", "c"} {
			if set := w.port.set.Load(); set != nil && set.Has(name) {
				got += name
			}
		}
		if got != want {
			t.Errorf("in force is %q, want %q", got, want)
		}
	}
	for _, of := range []struct {
		data      []byte
		err, want string
	}{
		{toldOf("1", "a", ""), "the : expected a domain, such as domain: shop", ""},
		{toldOf("2", "a", "b"), "", "ab"},
		{toldOf("3", "c", "c"), "the c: the domain 'c' stands twice", "ab"},
		{toldOf("4", "c"), "", "c"},
		{toldOf("4"), "", ""},
		{toldOf("5", "b"), "", "b"},
	} {
		if got := w.tells(t, of.data); got != of.err {
			t.Errorf("%q: %s, want %s", of.data, got, of.err)
		}
		has(of.want)
	}
}

// What is in force is kept, and is in force in the next process, until that hears of another.
func TestWorldsAreKept(t *testing.T) {
	keep := filepath.Join(t.TempDir(), keepName)
	w, log := newFollower(t, keep)
	w.restore() // there is none, which is as it should be
	if log.String() != "" || w.port.set.Load() != nil {
		t.Error(log)
	}
	for _, data := range [][]byte{toldOf("1", "a"), toldOf("2", "b"), toldOf("3", "")} {
		w.tells(t, data)
	}
	if got := celldtest.ReadFile(t, keep); got != string(toldOf("2", "b")) {
		t.Errorf("%q is kept", got)
	}
	before := time.Now().Add(-90 * time.Minute)
	if err := os.Chtimes(keep, before, before); err != nil {
		t.Fatal(err)
	}
	next, log := newFollower(t, keep)
	next.restore()
	if set := next.port.set.Load(); set == nil || !set.Has("b") {
		t.Error("it is not in force")
	}
	if !strings.Contains(log.String(), `msg="the kept configuration is in force until the xDS server tells another" version=2 age=1h3`) {
		t.Error(log)
	}
	page := string(metrics.AppendText(nil, metrics.New().Read(0, next.declare)))
	for _, line := range []string{"celld_envoy_xds_connected 0\n", "celld_envoy_xds_config_timestamp_seconds "} {
		if !strings.Contains(page, "\n"+line) {
			t.Errorf("no %s in\n%s", line, page)
		}
	}
	for _, damaged := range []string{"\xff", string(toldOf("2", ""))} {
		celldtest.WriteFile(t, damaged, keep)
		other, log := newFollower(t, keep)
		if other.restore(); other.port.set.Load() != nil || !strings.Contains(log.String(), "the kept configuration is of no use") {
			t.Errorf("%q: %s", damaged, log)
		}
	}
	lost, log := newFollower(t, filepath.Join(keep, "file"))
	if got := lost.tells(t, toldOf("1", "a")); got != "" || !strings.Contains(log.String(), "the configuration cannot be kept") {
		t.Error(got, log)
	}
}

// Before the first configuration nobody should call here, unless celld is told to start empty.
func TestHealthBeforeTheFirstWorld(t *testing.T) {
	w, _ := newFollower(t, "")
	d := w.port
	d.stopped = make(chan struct{})
	unready := func() string {
		if err := d.unwell(); err != nil {
			return err.Error()
		}
		return ""
	}
	if got := unready(); got != "no configuration is loaded" {
		t.Error(got)
	}
	d.options.StartEmpty = true
	if got := unready(); strings.Contains(got, "configuration") {
		t.Error(got)
	}
	d.options.HealthNeedsDomain = true
	if w.tells(t, toldOf("1")); unready() != "the configuration has no domain" {
		t.Error(unready())
	}
}
