package store

import (
	"testing"

	"celld/cell"
	"celld/store/policy"
)

// What AppendName writes, CutName reads.
func TestNamesOfFields(t *testing.T) {
	literal, err := cell.ParseLimit("9/1h,algo=window")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []*policy.Limit{nil, policy.New("api", literal).Limits[0]} {
		for _, leases := range []bool{false, true} {
			l := LimitState{Policy: p, Limit: literal}
			plain := string(l.AppendName(nil))
			l.Limit.Leases = leases
			var f Field
			limit, of, err := f.CutName(string(l.AppendName(nil)))
			if limit != plain || of != leases || f.Part || err != nil {
				t.Errorf("%q is %q, leases %v, part %v, %v", l.AppendName(nil), limit, of, f.Part, err)
			}
		}
	}
}

func TestNamesOfParts(t *testing.T) {
	var f Field
	if limit, leases, err := f.CutName("1/1h,algo=log 4294967295"); limit != "1/1h,algo=log" || leases || !f.Part || err != nil {
		t.Errorf("%q, leases %v, part %v, %v", limit, leases, f.Part, err)
	}
	for _, name := range []string{"1/1h ", "1/1h x", "1/1h -1", "1/1h 4294967296", "1/1h leases 1", "1/1h 1 leases"} {
		if _, _, err := f.CutName(name); err != ErrField {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestTypesOfValues(t *testing.T) {
	if s, h := (Value{TAT: 1}).Type(), (Value{HoldsLimits: true}).Type(); s != "string" || h != "hash" {
		t.Errorf("%s, %s", s, h)
	}
}
