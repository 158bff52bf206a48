package check

import (
	"reflect"
	"testing"

	"celld/cell"
)

// What is sent is what is checked.
func TestEncode(t *testing.T) {
	limit := func(text string) cell.Limit {
		l, err := cell.ParseLimit(text)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	h := History{
		Calls: []Call{
			{Client: 1, Key: "k", Kind: Take, Cost: 2, Text: "CL.TAKE",
				Limit: limit("5/1s,block=2s,name=a"), Others: []cell.Limit{limit("7/1m,algo=slide,buckets=6")},
				Costs: []int64{-1, 3}, Began: 1, Ended: 2, Times: []int64{5, 6}, Answer: []int64{0, 1}},
			{Kind: Throttle, Burst: [3]int64{1, 2, 3}, Error: "MISCONF", Maybe: true},
		},
		Crashes: []Crash{{At: 3, ForgetsNS: 1 << 61}}, Losses: []Loss{{Ended: 1<<63 - 1}}, Stalls: true, ArrivesNS: 7,
	}
	got, err := Decode(Encode(h))
	if err != nil || !reflect.DeepEqual(got, h) {
		t.Errorf("%v\n got %+v\nwant %+v", err, got, h)
	}
}
