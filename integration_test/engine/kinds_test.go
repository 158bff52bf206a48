package engine

import (
	"regexp"
	"strings"
	"testing"

	"celld/integration_test/harness"
	"celld/integration_test/harness/engines"
	"celld/internal/celldtest"
)

// TestStoreKinds names a Cluster and a Sentinel's master in all ways, right and wrong, with passwords.
func TestStoreKinds(t *testing.T) {
	t.Parallel()
	cluster := engines.Redis(t).Cluster(t, "--requirepass", "pw")
	with := func(url, user string) string { return strings.Replace(url, "redis://", "redis://"+user+"@", 1) }
	one := "redis://" + cluster.Nodes[0].Addr
	replica := "redis://" + cluster.Nodes[3].Addr
	for i, url := range []string{with(cluster.URL, ":pw"), with(one, ":pw"), with(replica, ":pw"), with(one+",127.0.0.1:1", ":pw")} {
		srv := harness.Start(t, "--store", url)
		for _, key := range []string{"a", "b", "c", "d", "e", "f"} { // in several slots
			decides(t, srv, key+strings.Repeat("x", i))
		}
		if info := harness.Dial(t, srv.Addr).Do("INFO", "store"); !strings.Contains(info, "store_engine_kind:cluster\r\n") {
			t.Errorf("%s: %s", url, info)
		}
	}
	doesNotStart(t, 1, "refuses the user or password", nil, "--store", with(cluster.URL, ":s3cret"))
	doesNotStart(t, 1, "wants a password", nil, "--store", cluster.URL)
	doesNotStart(t, 1, "only database 0", nil, "--store", with(one, ":pw")+"/2")

	alone := engines.StartEngine(t)
	doesNotStart(t, 1, "are for a Cluster, and it is not one", nil, "--store", alone.URL+","+strings.TrimPrefix(alone.URL, "redis://"))
	doesNotStart(t, 1, "is for Sentinels, and it is not one", nil, "--store", alone.URL+"?master=m")
}

// TestStoreSentinel finds the master that Sentinels know, in a database of its own.
func TestStoreSentinel(t *testing.T) {
	t.Parallel()
	f := engines.Redis(t).Sentinel(t)
	sentinels, _, _ := strings.Cut(f.URL, "?")
	srv := harness.Start(t, "--store", sentinels+"/3?master="+engines.MasterName)
	decides(t, srv, "k")
	master := f.Nodes[0].Dial()
	master.Do("SELECT", "3")
	if got := master.Do("EXISTS", "k"); got != ":1\r\n" {
		t.Errorf("in database 3 of the master: %q", got)
	}
	user := regexp.MustCompile("`(ACL SETUSER celld .*)`").FindStringSubmatch(celldtest.ReadFile(t, "../../docs/reference/engine.md"))
	if user == nil {
		t.Fatal("docs/reference/engine.md has no user for Sentinels")
	}
	for _, s := range f.Sentinels {
		s.OK(strings.Fields(user[1])...)
	}
	srv = harness.Start(t, "--store", f.URL+"&sentinel-username=celld&sentinel-password=s3cret")
	decides(t, srv, "k2")
	if strings.Contains(srv.Log.String(), "s3cret") {
		t.Errorf("the log has a password:\n%s", srv.Log)
	}
	for _, s := range f.Sentinels {
		if log := s.Do("ACL", "LOG"); log != "*0\r\n" {
			t.Errorf("a Sentinel has refused something: %q", log)
		}
	}
	doesNotStart(t, 1, "refuses the user or password", nil, "--store", f.URL+"&sentinel-username=celld&sentinel-password=other")
	doesNotStart(t, 1, "no master of that name", nil, "--store", sentinels+"?master=other")
	srv = harness.Start(t, "--store", "redis://"+f.Sentinels[0].Addr)
	celldtest.Eventually(t, "celld warns of a Sentinel", func() bool {
		return strings.Contains(srv.Log.String(), "a Sentinel keeps no limits")
	})
}
