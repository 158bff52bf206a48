package cli

import (
	"context"
	"strings"
	"testing"
	"time"

	"celld/resp/config"
	"celld/resp/loglimit"
)

// The log has Redis's names of levels, in both formats.
func TestLevelNames(t *testing.T) {
	for format, want := range map[string]string{"text": "level=VERBOSE msg=said", "json": `"level":"VERBOSE","msg":"said"`} {
		cfg := config.New()
		for _, s := range cfg.Settings() {
			value := map[string]string{"log-format": format, "loglevel": "debug"}[s.Name]
			if value == "" {
				continue
			}
			if err := s.Value.Set(value); err != nil {
				t.Fatal(err)
			}
		}
		var b strings.Builder
		lines := NewLines(&b)
		NewLog(lines, cfg).Log(context.Background(), loglimit.Verbose, "said", "level", "high")
		lines.Flush(time.Minute)
		if !strings.Contains(b.String(), want) {
			t.Errorf("%s", &b)
		}
	}
}
