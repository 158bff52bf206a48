package clock

import "testing"

func TestBootTime(t *testing.T) {
	first, ok := bootNS()
	second, alsoOK := bootNS()
	if !ok || !alsoOK || first <= 0 || second < first {
		t.Errorf("%d, %v, then %d, %v", first, ok, second, alsoOK)
	}
}
