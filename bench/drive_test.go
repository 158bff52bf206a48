//go:build linux

package main

import (
	"slices"
	"strings"
	"testing"
)

// TestDriveRows says of the rows of redis-benchmark what they ask, and how many of 1,000 calls may find their key, at least and at most.
func TestDriveRows(t *testing.T) {
	for _, test := range []struct {
		row, limit  string
		least, most int64
	}{
		{"p16-1k", "15 30 60", 0, 1000},
		{"p1-1m", "15 30 3600", 990, 1000},
		{"p128-1m", "15 30 3600", 990, 1000},
		{"p16-new", "15 30 3600", 0, 50},
		{"p128-ended", "15 100 1", 0, 50},
		{"aof-always-p16", "1000000 1 60", 0, 1000},
	} {
		i := slices.IndexFunc(allRows, func(r row) bool { return r.name == test.row })
		w := allRows[i].work.(drive)
		if got := strings.Join(w.words(allPeers[0])[2:], " "); got != test.limit {
			t.Errorf("%s asks %s", test.row, got)
		}
		least, most := int64(1000), int64(0)
		for hits := range int64(1001) {
			if w.found(counts{commands: 1000, hits: hits}) {
				least, most = min(least, hits), max(most, hits)
			}
		}
		if least != test.least || most != test.most {
			t.Errorf("%s: %d to %d hits", test.row, least, most)
		}
	}
}
