package metrics

import "testing"

func TestHumanBytes(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0B", 1023: "1023B", 1024: "1.00K", 1536: "1.50K", 1<<20 - 1: "1024.00K", 1 << 20: "1.00M", 3 << 30: "3.00G", 5 << 40: "5.00T",
		1 << 50: "1024.00T",
	} {
		if got := HumanBytes(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
