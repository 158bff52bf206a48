package resp

import (
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"celld/cell"
	"celld/internal/celldtest"
	"celld/resp/certs"
	"celld/resp/door"
	"celld/resp/metrics"
	"celld/resp/session/sessiontest"
	"celld/resp/watch"
	"celld/store"
	"celld/store/policy"
)

// counted are the decisions that metrics tell, one a line, sorted.
func (w *world) counted() string {
	var lines []string
	for _, m := range w.Metrics() {
		if m.Name == "celld_decisions_total" && m.Value != int64(0) {
			lines = append(lines, fmt.Sprintf("%s %s %s %s %v", m.Labels[1], m.Labels[3], m.Labels[5], m.Labels[7], m.Value))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// Each decision counts once for each policy that the call names, and once in INFO.
func TestDecisionsByPolicy(t *testing.T) {
	w := newWorld(t)
	p := w.connect()
	p.want("CL.POLICY SET p 1/1h", ":1\r\n")
	p.want("CL.POLICY SET log 2/1h,algo=log", ":1\r\n")
	p.send(strings.Repeat("CL.THROTTLE a 0 1 3600\r\n", 3) + strings.Repeat("CL.THROTTLE b @p\r\n", 4) +
		strings.Repeat("CL.TAKE c @log\r\n", 3))
	p.send("CL.TAKE d 5/1h,algo=window\r\nCL.TAKE b @p:x\r\nCL.TAKE b @p PEEK\r\nCL.MTAKE 2 e @p f @log\r\nCL.TAKE g 9/1h @p\r\nCL.TAKE g 9/1h @p\r\nMULTI\r\nCL.TAKE h @p\r\nEXEC\r\n")
	want := strings.Join([]string{
		"cl.take literals window allowed 1",
		"cl.take log log allowed 3", "cl.take log log limited 1",
		"cl.take p gcra allowed 3", "cl.take p gcra limited 2",
		"cl.throttle literals gcra allowed 1", "cl.throttle literals gcra limited 2",
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
	const mostPolicyNames = 100 // that metrics tell
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
	if strings.Count(got, "\n") != mostPolicyNames || !strings.Contains(got, "cl.take other gcra allowed 20\n") ||
		!strings.Contains(got, fmt.Sprintf("cl.take p7 gcra allowed %d\n", 1+20*mostPolicyNames)) {
		t.Error(got)
	}
}

// Decisions that the disk refuses do not count.
func TestDecisionsByPolicyNeedTheDisk(t *testing.T) {
	disk := &sessiontest.Disk{}
	w := newWorldOn(t, disk, t.TempDir())
	if err := w.loadAll(nil); err != nil {
		t.Fatal(err)
	}
	limit, err := cell.ParseLimit("9/1h")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.sessions.Store.SetPolicy("p", []cell.Limit{limit}, policy.Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Door.TakeOne(t.Context(), door.Caller{Trusted: true}, door.Ask{Key: "k", Limits: []string{"@p"}}); err != nil {
		t.Fatal(err)
	}
	disk.Full.Store(true)
	if _, err := w.Door.TakeOne(t.Context(), door.Caller{Trusted: true}, door.Ask{Key: "k", Limits: []string{"@p"}}); err == nil {
		t.Error("it was not refused")
	}
	if got := w.counted(); got != "cl.take p gcra allowed 1" {
		t.Error(got)
	}
	if st := w.sessions.Persist.Status(); st.AOFSyncs == 0 || st.AOFSyncs != disk.Syncs.Load() {
		t.Errorf("%d fsyncs, and %d are counted", disk.Syncs.Load(), st.AOFSyncs)
	}
}

// everyMetric is what a server tells whose keys are in memory, and one with an engine. Both have TLS, and page is what their live pages
// show.
func everyMetric(t *testing.T) (all []metrics.Metric, pages []map[string]any) {
	cert, key := celldtest.NewAuthority(t).Sign("server", &x509.Certificate{NotAfter: time.Unix(4e9, 0)})
	keeper, err := certs.Open(certs.Files{Cert: cert, Key: key})
	if err != nil {
		t.Fatal(err)
	}
	memory := newWorldOn(t, &sessiontest.Disk{}, t.TempDir(), "save", "60 1")
	cluster, fake := engineWorld(t, false)
	fake.Known = store.Facts{SlotsKnown: true, SlotsWithoutMaster: 1, Version: "x", Eviction: "x", ClockKnown: true,
		Away: errors.New("it is away")}
	memory.Watch(&watch.File{Setting: "tls-cert-file", Paths: []string{cert}})
	for _, w := range []*world{memory, cluster} {
		w.connect().do("PING")
		w.sessions.Config.TLS.Keeper = keeper
		all = append(all, w.Metrics()...)
		var page map[string]any
		text, err := json.Marshal(w.Overview())
		if err == nil {
			err = json.Unmarshal(text, &page)
		}
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, page)
	}
	return all, pages
}

// TestMetricsPage holds the table of metrics in docs/reference/metrics.md to the metrics.
func TestMetricsPage(t *testing.T) {
	rows := map[string]string{
		"celld_http_requests_total": "| `celld_http_requests_total` | requests to the HTTP port, by `code`, `page` |"}
	all, _ := everyMetric(t)
	for _, m := range all {
		if !strings.HasPrefix(m.Name, "celld_") { // of Go and of the process
			continue
		}
		help := strings.TrimSuffix(m.Help, ".")
		if help[1] >= 'a' { // no TLS
			help = strings.ToLower(help[:1]) + help[1:]
		}
		if strings.Contains(help, "label") {
			m.Labels = nil
		}
		for i := 0; i < len(m.Labels); i += 2 {
			help += []string{", by `", ", `"}[min(i, 1)] + m.Labels[i] + "`"
		}
		if m.Kind == "histogram" {
			help += " (histogram)"
		}
		if (m.Kind == "counter") != strings.HasSuffix(m.Name, "_total") {
			t.Errorf("%s is a %s", m.Name, m.Kind)
		}
		rows[m.Name] = "| `" + m.Name + "` | " + help + " |"
	}
	got := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `celld_[a-z_]+` \\| .*$").FindAllString(readDoc(t, "reference/metrics.md"), -1) {
		got[regexp.MustCompile(`\[(.*?)\]\(.*?\)`).ReplaceAllString(row, "$1")] = true
	}
	for _, row := range rows {
		if !got[row] {
			t.Errorf("the page lacks the row\n%s", row)
		}
		delete(got, row)
	}
	for row := range got {
		t.Errorf("the page has a row that is no metric's:\n%s", row)
	}
}

// A metric that names a field of the live page has it there.
func TestMetricsOfTheLivePage(t *testing.T) {
	all, pages := everyMetric(t)
	for _, m := range all {
		if m.JSON == "" {
			continue
		}
		names := strings.Split(m.JSON, ".")
		if !slices.ContainsFunc(pages, func(page map[string]any) bool {
			for i, name := range names {
				value, found := page[name]
				if i == len(names)-1 || !found {
					return found
				}
				page, _ = value.(map[string]any)
			}
			return false
		}) {
			t.Errorf("the page has no %s", m.JSON)
		}
	}
}
