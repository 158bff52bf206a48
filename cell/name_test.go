package cell_test

import (
	"testing"

	"pgregory.net/rapid"

	"celld/cell"
)

// A limit keeps its name as text, and its states have it. Limits that differ only in their names do not share a state.
func TestNamesOfLimits(t *testing.T) {
	eachAlgorithm(t, func(t *rapid.T, _ algorithm, l cell.Limit) {
		name := rapid.StringMatching("[a-zA-Z0-9_-]{1,32}").Draw(t, "name")
		named := mustLiteral(t, l.String()+",name="+name)
		if named.Name.String() != name || named.Shape == l.Shape || named.Alike(l.Shape) || named.Bare().Name != named.Name {
			t.Fatalf("%s: %+v", named.String(), named.Shape)
		}
		if again := mustLiteral(t, named.String()); again != named {
			t.Fatalf("%s is read as %s", named.String(), again.String())
		}
		var st cell.State
		named.Fit(&st, 1_800_000_000_000_000_000, 1)
		named.Decide(&st, 1_800_000_000_000_000_000, 1, cell.Force)
		kept, _, err := cell.ParseState(string(named.AppendState(nil, &st)))
		if err != nil || kept.Shape != named.Shape {
			t.Fatalf("%s: %+v, %v", named.AppendState(nil, &st), kept.Shape, err)
		}
	})
}

func TestWhatIsNoName(t *testing.T) {
	for _, text := range []string{"", "a b", "a,b", "ä", "a:b", "0123456789abcdef0123456789abcdefg"} {
		if n, ok := cell.ParseName(text); ok || n != (cell.Name{}) {
			t.Errorf("%q is a name", text)
		}
	}
	if text := (cell.Name{}).String(); text != "" {
		t.Errorf("none is %q", text)
	}
}
