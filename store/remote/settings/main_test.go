package settings

import (
	"flag"
	"testing"
)

// TestMain lets more tests run at once than there are cores: those that say t.Parallel mostly wait.
func TestMain(m *testing.M) {
	flag.Set("test.parallel", "8")
	m.Run()
}
