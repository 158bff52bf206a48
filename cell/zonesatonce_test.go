package cell_test

import (
	"fmt"
	"sync"
	"testing"

	"celld/cell"
)

// A zone that is named many times at once has one number.
func TestZonesAreNamedAtTheSameTime(t *testing.T) {
	for hours := range int64(13) {
		var all sync.WaitGroup
		var limits [8]cell.Limit
		start := make(chan struct{})
		for i := range limits {
			all.Go(func() {
				<-start
				limits[i] = mustLiteral(t, fmt.Sprintf("1/day,tz=Etc/GMT-%d", hours))
				if midnight := edge(&limits[i], aDayIn2027) + hours*3_600e9; midnight%86_400e9 != 0 {
					t.Errorf("%v: the day ends at %d", limits[i], midnight)
				}
			})
		}
		close(start)
		all.Wait()
		for _, l := range limits {
			if l != limits[0] {
				t.Errorf("%v has the zones %d and %d", l, l.Zone, limits[0].Zone)
			}
		}
	}
}
