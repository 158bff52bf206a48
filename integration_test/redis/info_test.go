package redis

import (
	"strings"
	"testing"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// TestInfoFieldsOfCelld sees that docs/reference/metrics.md names each field of INFO that Redis does not have.
func TestInfoFieldsOfCelld(t *testing.T) {
	t.Parallel()
	celld, redis := harness.Dial(t, harness.Start(t).Addr), harness.Dial(t, celldtest.StartRedis(t))
	known := map[string]bool{"go_version": true} // beside Redis's gcc_version
	for _, fields := range harness.InfoSections(redis.Do("INFO", "everything")) {
		for name := range fields {
			known[name] = true
		}
	}
	_, page, _ := strings.Cut(celldtest.ReadFile(t, "../../docs/reference/metrics.md"), "\n## INFO\n")
	page, _, _ = strings.Cut(page, "\n## ")
	own := 0
	for section, fields := range harness.InfoSections(celld.Do("INFO", "everything")) {
		for name := range fields {
			switch {
			case known[name] || section == "Modules" || section == "Commandstats" || section == "Latencystats" || section == "Errorstats":
			case !strings.Contains(page, "`"+name+"`"):
				t.Errorf("docs/reference/metrics.md does not name %s", name)
			default:
				own++
			}
		}
	}
	if own < 15 {
		t.Errorf("celld has %d fields of its own", own)
	}
}
