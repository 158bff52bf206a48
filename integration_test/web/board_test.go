package web

import (
	"encoding/json"
	"strings"
	"testing"

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
