package web

import (
	"crypto/x509"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"celld/integration_test/harness"
	"celld/integration_test/harness/engines"
	"celld/internal/celldtest"
)

const examples = "../../examples/monitoring/"

// board is what this test looks at in Grafana's JSON.
type board struct {
	UID, Title string
	Templating struct {
		List []struct{ Name, Type, Query string }
	}
	Panels []panel
}

type panel struct {
	ID                       int
	Type, Title, Description string
	GridPos                  struct{ X, Y, W, H int }
	Datasource               struct{ Type, UID string }
	FieldConfig              struct {
		Defaults struct{ Unit string }
	}
	Targets []struct{ RefID, Expr string }
}

func readBoard(t *testing.T) (b board) {
	t.Helper()
	if err := json.Unmarshal([]byte(celldtest.ReadFile(t, examples+"celld-dashboard.json")), &b); err != nil {
		t.Fatal(err)
	}
	if b.UID == "" || b.Title == "" || len(b.Panels) < 20 {
		t.Fatalf("the board: %q, %q, %d panels", b.UID, b.Title, len(b.Panels))
	}
	return b
}

// Grafana shows nothing of a panel without a place or a data source, and a number without a unit or a description tells nobody anything.
func TestBoardIsWhole(t *testing.T) {
	t.Parallel()
	ids, taken := map[int]bool{}, map[[2]int]string{}
	for _, p := range readBoard(t).Panels {
		at := p.GridPos
		if ids[p.ID] || p.ID == 0 || p.Title == "" || at.W < 1 || at.H < 1 || at.X+at.W > 24 {
			t.Errorf("%d, %s: its number is another's, or it has no title or place: %+v", p.ID, p.Title, at)
		}
		ids[p.ID] = true
		for x := at.X; x < at.X+at.W; x++ {
			for y := at.Y; y < at.Y+at.H; y++ {
				if other, ok := taken[[2]int{x, y}]; ok {
					t.Fatalf("%s lies on %s", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		if p.Datasource.Type != "prometheus" || p.Datasource.UID != "${datasource}" || len(p.Description) < 10 ||
			p.FieldConfig.Defaults.Unit == "" || len(p.Targets) == 0 {
			t.Errorf("%s lacks its data source, description, unit or expression", p.Title)
		}
		refs := map[string]bool{}
		for _, target := range p.Targets {
			if refs[target.RefID] || strings.Count(target.Expr, "{") != strings.Count(target.Expr, `{job="$job",instance=~"$instance"`) {
				t.Errorf("%s: %q is there twice, or is not of the job and the instances that were chosen: %s", p.Title,
					target.RefID, target.Expr)
			}
			refs[target.RefID] = true
		}
	}
}

// Each expression of the board, and each of its variables, has data: Prometheus scrapes a celld with files and TLS, and one on an engine.
func TestBoardHasData(t *testing.T) {
	t.Parallel()
	ca := celldtest.NewAuthority(t)
	cert, key := ca.Sign("server", &x509.Certificate{DNSNames: []string{"localhost"}})
	alone := start(t, "--appendonly", "yes", "--port", harness.FreePort(t),
		"--tls-port", harness.FreePort(t), "--tls-cert-file", cert, "--tls-key-file", key, "--tls-auth-clients", "no")
	shared := start(t, "--store", engines.StartEngine(t).URL)
	addr := prometheus(t,
		fmt.Sprintf("global: {scrape_interval: 1s}\nscrape_configs:\n  - job_name: celld\n    static_configs: [{targets: [%q, %q]}]\n",
			alone.HTTP(), shared.HTTP()))
	clients := []*harness.Conn{harness.Dial(t, alone.Addr), harness.Dial(t, shared.Addr)}
	for _, c := range clients {
		c.Do("CL.POLICY", "SET", "api", "2/1h")
	}
	load := func() {
		for _, c := range clients {
			for _, call := range []string{
				"CL.THROTTLE a 1 100 1", "CL.TAKE b @api", "CL.TAKE c 20/1s,burst=1 WAIT 1000",
				"CL.TAKE c 20/1s,burst=1 WAIT 1000", "NOSUCH",
			} {
				c.Do(strings.Fields(call)...)
			}
		}
	}
	hasData := func(what, expression string) {
		t.Helper()
		expression = strings.NewReplacer("$job", "celld", "$instance", ".*", "$__rate_interval", "1m").Replace(expression)
		celldtest.Eventually(t, what+": "+expression, func() bool {
			if slices.ContainsFunc(queryAll(addr, expression), func(value string) bool { return value != "NaN" }) {
				return true
			}
			load()
			return false
		})
	}
	b := readBoard(t)
	for _, p := range b.Panels {
		for _, target := range p.Targets {
			hasData(p.Title, target.Expr)
		}
	}
	labels := 0
	for _, v := range b.Templating.List {
		if v.Type == "datasource" {
			continue
		}
		q := regexp.MustCompile(`^label_values\((.+), (\w+)\)$`).FindStringSubmatch(v.Query)
		if q == nil {
			t.Fatalf("$%s: %q", v.Name, v.Query)
		}
		labels++
		hasData("$"+v.Name, fmt.Sprintf(`count by (%s) (%s) and on (%[1]s) up{%[1]s!=""}`, q[2], q[1]))
	}
	if labels != 2 {
		t.Errorf("%d variables", labels)
	}
}
