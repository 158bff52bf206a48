package deploy

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// shell runs the sh blocks of a page in their order, in one bash, as a reader would type them. shims are programs that stand before
// others of their name in PATH, replaced are texts of the page that this machine needs otherwise, such as ports. It returns what each
// block printed.
func shell(t *testing.T, page string, shims map[string]string, replaced ...string) (blocks []shown) {
	t.Helper()
	blocks = blocksOf(page)
	var script strings.Builder
	for _, b := range blocks {
		script.WriteString(strings.NewReplacer(replaced...).Replace(b.typed) + "\necho " + mark + "\n")
	}
	bash := harness.Bash(t, script.String()+"exit 0", t.TempDir(), shims)
	home := t.TempDir()
	for name, stream := range map[string]*io.Writer{"out": &bash.Stdout, "errors": &bash.Stderr} {
		file, err := os.Create(filepath.Join(home, name)) // not pipes, which what runs on would keep open
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		*stream = file
	}
	ended := bash.Run()
	printed := celldtest.ReadFile(t, home, "out")
	if t.Logf("errors: %s", celldtest.ReadFile(t, home, "errors")); ended != nil {
		t.Errorf("%v, after:\n%s", ended, printed)
	}
	parts := strings.Split(printed, mark+"\n")
	if len(parts) != len(blocks)+1 {
		t.Fatalf("%d of %d blocks ran:\n%s", len(parts)-1, len(blocks), printed)
	}
	for i := range blocks {
		blocks[i].printed = parts[i]
	}
	return blocks
}

const mark = "---the next block---"

// shown is a block of commands, what the page says that they print (empty: nothing is said), and what they have printed.
type shown struct{ typed, says, printed string }

// blocksOf returns the sh blocks of a page, each with the text block that follows it.
func blocksOf(page string) (blocks []shown) {
	for _, b := range regexp.MustCompile("(?ms)^```(sh|text)\n(.*?)^```$").FindAllStringSubmatch(page, -1) {
		switch last := len(blocks) - 1; {
		case b[1] == "sh":
			blocks = append(blocks, shown{typed: b[2]})
		case last >= 0 && blocks[last].says == "":
			blocks[last].says = b[2]
		}
	}
	return blocks
}

// docker stands for Docker: it builds nothing, and runs celld itself with the variables and arguments that the container would have.
const docker = `
[ "$1" = run ] || exit 0
shift
while [ $# -gt 0 ]; do
	case $1 in
	-e) export "$2"; shift 2 ;;
	-p) shift 2 ;;
	-*) shift ;;
	*) break ;;
	esac
done
shift
celld "$@" &
`

// TestREADME starts celld in each way that the README shows, and types in what it shows next.
func TestREADME(t *testing.T) {
	t.Parallel()
	page := celldtest.ReadFile(t, "../../README.md")
	_, start, _ := strings.Cut(page, "\n## Start it\n")
	start, next, _ := strings.Cut(start, "\n## See it allow and deny\n")
	ways, console := blocksOf(start), blocks(next, "console")[0]
	if len(ways) != 3 || !strings.HasPrefix(console, "$ redis-cli CL.THROTTLE ") {
		t.Fatalf("%q, %q", ways, console)
	}
	celldtest.Need(t, "redis-cli")
	for _, way := range ways {
		t.Run(strings.Fields(way.typed)[0], func(t *testing.T) {
			t.Parallel()
			dir, port := t.TempDir(), harness.FreePort(t)
			const name = "celld_1.2.3_linux_amd64"
			if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
				t.Fatal(err)
			}
			copyFile(t, harness.Binary(t), filepath.Join(dir, "celld"))
			copyFile(t, harness.Binary(t), filepath.Join(dir, name, "celld"))
			harness.Tool(t, "tar", "czf", filepath.Join(dir, name+".tar.gz"), "-C", dir, name)
			script := strings.ReplaceAll(way.typed, "\nmake test", "\n# make test") // which this is a part of
			where := dir
			if strings.HasPrefix(way.typed, "go run") {
				where = "../.."
			}
			shims := map[string]string{"docker": docker, "celld": "exec " + dir + `/celld "$@"`}
			bash := harness.Bash(t, script, where, shims, "CELLD_PORT="+port)
			if err := bash.Start(); err != nil {
				t.Fatal(err)
			}
			env := harness.CleanEnv()
			for _, export := range regexp.MustCompile(`(?m)^export (\S+)`).FindAllStringSubmatch(way.typed, -1) {
				env = append(env, export[1])
			}
			addr := "127.0.0.1:" + port
			celldtest.Eventually(t, "celld listens", func() bool {
				conn, err := net.Dial("tcp", addr)
				if err == nil {
					conn.Close()
				}
				return err == nil
			})
			celldtest.Again(t, func(again string) string { // a slow machine may see a second less
				console := strings.ReplaceAll(console, "login:ann", "login:ann"+again)
				if got := typeIn(t, addr, console, env); got != console {
					return got
				}
				return ""
			})
		})
	}
}
