package resp

import (
	"crypto/x509"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"celld/integration_test/harness"
	"celld/resp/certs"
	"celld/store/memory"
	"celld/store/policy"
	"celld/store/remote"
)

// counted are the decisions that metrics tell, one a line, sorted.
func (w *world) counted() string {
	var lines []string
	for _, m := range w.Metrics() {
		if m.Name == "celld_decisions_total" && m.Value > 0 {
			lines = append(lines, fmt.Sprintf("%s %s %s %s %v", m.Labels[1], m.Labels[3], m.Labels[5], m.Labels[7], m.Value))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// Each decision counts once, under the limit that binds, and INFO has the same sums.
func TestDecisionsByPolicy(t *testing.T) {
	w := newWorld(t)
	p := w.connect()
	p.want("CL.POLICY SET p 1/1h", ":1\r\n")
	p.want("CL.POLICY SET log 2/1h,algo=log", ":1\r\n")
	p.send(strings.Repeat("CL.THROTTLE a 0 1 3600\r\n", 3) + strings.Repeat("CL.THROTTLE b @p\r\n", 4) + strings.Repeat("CL.TAKE c @log\r\n", 3))
	p.send("CL.TAKE d 5/1h,algo=window\r\nCL.TAKE b @p:x\r\nCL.TAKE b @p PEEK\r\nCL.MTAKE 2 e @p f @log\r\nCL.TAKE g 9/1h @p\r\nCL.TAKE g 9/1h @p\r\nMULTI\r\nCL.TAKE h @p\r\nEXEC\r\n")
	want := strings.Join([]string{
		"cl.take  window allowed 1",
		"cl.take log log allowed 2", "cl.take log log limited 1",
		"cl.take p gcra allowed 3", "cl.take p gcra limited 2",
		"cl.throttle  gcra allowed 1", "cl.throttle  gcra limited 2",
		"cl.throttle p gcra allowed 1", "cl.throttle p gcra limited 3",
	}, "\n")
	if got := w.counted(); got != want {
		t.Errorf("\n%s\nwant\n%s", got, want)
	}
	info := p.do("INFO", "stats")
	for _, line := range []string{"throttle_allowed:2\r\n", "throttle_limited:5\r\n", "take_allowed:6\r\n", "take_limited:3\r\n"} {
		if !strings.Contains(info, line) {
			t.Errorf("INFO has no %q", line)
		}
	}
}

// A hundred policies have counters of their own; the others share one. A policy that is reset keeps its own.
func TestManyPoliciesAreCounted(t *testing.T) {
	w := newWorld(t)
	p := w.connect()
	for i := range mostPolicyNames + 20 {
		p.want(fmt.Sprintf("CL.POLICY SET p%d 1/1h", i), ":1\r\n")
		p.send(fmt.Sprintf("CL.TAKE k%d @p%d\r\n", i, i))
	}
	for range 20 * mostPolicyNames { // more than IDs are remembered of
		p.want("CL.POLICY SET p7 1/1h RESET", ":1\r\n")
		p.send("CL.TAKE k7 @p7\r\n")
	}
	got := w.counted()
	if strings.Count(got, "\n") != mostPolicyNames || !strings.Contains(got, "cl.take other gcra allowed 20\n") || !strings.Contains(got, fmt.Sprintf("cl.take p7 gcra allowed %d\n", 1+20*mostPolicyNames)) {
		t.Error(got)
	}
}

// Decisions that the disk refuses do not count.
func TestDecisionsByPolicyNeedTheDisk(t *testing.T) {
	disk := &fullDisk{}
	w := newWorldOn(t, disk, t.TempDir())
	if err := w.loadAll(nil); err != nil {
		t.Fatal(err)
	}
	if _, err := w.call("CL.POLICY", "SET", "p", "9/1h"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.call("CL.TAKE", "k", "@p"); err != nil {
		t.Fatal(err)
	}
	disk.full.Store(true)
	if _, err := w.call("CL.TAKE", "k", "@p"); err == nil {
		t.Error("it was not refused")
	}
	if got := w.counted(); got != "cl.take p gcra allowed 1" {
		t.Error(got)
	}
	if st := w.persist.Status(); st.AOFSyncs == 0 || st.AOFSyncs != disk.syncs.Load() {
		t.Errorf("%d fsyncs, and %d are counted", disk.syncs.Load(), st.AOFSyncs)
	}
}

func TestWaitsAreMetrics(t *testing.T) {
	inTime(t, func(t *testing.T, w *world) {
		p, other := w.connect(), w.connect()
		p.send("CL.TAKE k 1/10s,algo=window WAIT 60000\r\n")
		p.send("CL.TAKE k 1/10s,algo=window WAIT 60000\r\n")
		other.send("CL.TAKE k 1/10s,algo=window WAIT 5\r\n") // is refused
		p.after(10 * time.Second)
		h := w.stats.waits.histogram()
		if h.Count != 2 || h.Below[0] != 1 || h.Below[6] != 1 || h.Below[7] != 2 || h.Below[9] != 2 || h.MostNS[7] != 16_384_000_000 || h.SumNS < 10e9 || h.SumNS > 10.1e9 {
			t.Errorf("%+v", h)
		}
	})
}

func TestTimesAsHistogram(t *testing.T) {
	var st times
	for _, ns := range []int64{1, 1000, 1024, 4095, 4096, 2_000_000_000} {
		st.add(ns, 1)
	}
	var r timesRead
	st.read(&r)
	h := r.histogram(7)
	if h.Count != 6 || h.SumNS != 7 || h.MostNS[1] != 4096 || h.Below[0] != 2 || h.Below[1] != 4 || h.Below[2] != 5 || h.Below[10] != 6 {
		t.Errorf("%+v", h)
	}
}

// TestMetricsPage holds the table of metrics in docs/http.md to the metrics.
func TestMetricsPage(t *testing.T) {
	all := map[string]string{"celld_http_requests_total": "counter"}
	note := func(srv *Server) {
		for _, m := range srv.Metrics() {
			if !strings.HasPrefix(m.Name, "celld_") {
				continue // of Go and of the process
			}
			switch {
			case m.Histogram != nil:
				all[m.Name] = "histogram"
			case m.Total:
				all[m.Name] = "counter"
			default:
				all[m.Name] = "gauge"
			}
			if !strings.HasSuffix(m.Help, ".") || m.Total != strings.HasSuffix(m.Name, "_total") {
				t.Errorf("%s: %q", m.Name, m.Help)
			}
		}
	}
	w := newWorld(t)
	w.connect().do("PING")
	cert, key := harness.NewAuthority(t).Sign("server", &x509.Certificate{NotAfter: time.Unix(4e9, 0)})
	var err error
	if w.cfg.tls.keeper, err = certs.Open(certs.Files{Cert: cert, Key: key}); err != nil {
		t.Fatal(err)
	}
	note(w.Server)
	if !slices.ContainsFunc(w.Metrics(), func(m Metric) bool { return m.Name == "celld_tls_cert_not_after_timestamp_seconds" && m.Value == 4e9 }) {
		t.Error("the end of the certificate is not there")
	}
	policies := memory.New(memory.Options{MaxKeys: 1})
	engine, err := remote.Open(remote.Options{URL: "unix:///no/such/engine", Policies: &policy.Set{}})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	cfg := NewConfig()
	note(NewServer(Options{Config: cfg, Store: policies, Engine: engine}))
	cluster, fake := engineWorld(t, false)
	fake.facts = []remote.Fact{{Name: "store_slots_without_master", Value: "1"}}
	note(cluster.Server)
	page := readDoc(t, "http.md")
	for _, row := range regexp.MustCompile("(?m)^\\| `(celld_[a-z_]+)` \\| (.*?) \\|").FindAllStringSubmatch(page, -1) {
		if all[row[1]] != row[2] {
			t.Errorf("the page has %s as %s, and it is %q", row[1], row[2], all[row[1]])
		}
		delete(all, row[1])
	}
	for name, kind := range all {
		t.Errorf("the page lacks %s, a %s", name, kind)
	}
}
