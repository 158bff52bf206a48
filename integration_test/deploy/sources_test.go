package deploy

import (
	"testing"

	"celld/integration_test/harness"
)

// TestSourcesAreSeen sees that a change of celld is a reason for go test to run the tests again.
func TestSourcesAreSeen(t *testing.T) {
	if seen := harness.SeeSources(); seen < 20 {
		t.Errorf("%d source files are seen", seen)
	}
}
