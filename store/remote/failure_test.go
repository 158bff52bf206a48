package remote

import (
	"testing"

	"celld/cell"
)

func bucketOf(t testing.TB, maxBurst, count, period int64) cell.Bucket {
	t.Helper()
	b, err := cell.NewBucket(maxBurst, count, period)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
