//go:build all

package clients

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// TestREADMECompiledCalls does the same in languages whose clients are compiled for minutes.
func TestREADMECompiledCalls(t *testing.T) {
	t.Parallel()
	runREADME(t, []readmeCall{
		{"java", "Main.java", `import java.util.List;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.util.SafeEncoder;

class Main {
	@SuppressWarnings("unchecked")
	public static void main(String[] args) {
		Jedis client = new Jedis("127.0.0.1", PORT);
`, `		System.out.println(throttle.get(0) + " " + throttle.get(1) + " " + throttle.get(2) + " " + throttle.get(3));
	}
}
`, func(t *testing.T, file string) *exec.Cmd {
			return harness.Command(t, celldtest.Need(t, "java"), "--class-path", harness.JavaClasses(t, "../../examples/java-jedis"), file)
		}},
		{"rust", "main.rs", `use redis::cmd;

fn main() -> redis::RedisResult<()> {
    let mut client = redis::Client::open("redis://ADDR/")?.get_connection()?;
`, `    let _ = take;
    println!("{} {} {} {}", throttle.0 as i64, throttle.1, throttle.2, throttle.3);
    Ok(())
}
`, func(t *testing.T, file string) *exec.Cmd {
			dir := filepath.Dir(file)
			if err := os.Mkdir(filepath.Join(dir, "src"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(file, filepath.Join(dir, "src/main.rs")); err != nil {
				t.Fatal(err)
			}
			celldtest.WriteFile(t, celldtest.ReadFile(t, "../../examples/rust/Cargo.toml"), dir, "Cargo.toml")
			cmd := harness.Command(t, celldtest.Need(t, "cargo"), "run", "--quiet")
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "CARGO_TARGET_DIR="+harness.CachePath(t, "examples/readme"), "CARGO_PROFILE_DEV_DEBUG=none")
			return cmd
		}},
	})
}
