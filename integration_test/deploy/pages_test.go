package deploy

import (
	"fmt"
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

// TestBackupPage makes a backup and restores it, as docs/how-to/backup.md says.
func TestBackupPage(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"redis-cli", "redis-check-aof"} {
		celldtest.Need(t, tool)
	}
	port, dir := harness.FreePort(t), t.TempDir()
	live, kept := filepath.Join(dir, "live"), filepath.Join(dir, "kept")
	for _, folder := range []string{live, kept} {
		if err := os.Mkdir(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	page := strings.NewReplacer("/var/lib/celld", live, "/backup", kept).Replace(celldtest.ReadFile(t, "../../docs/how-to/backup.md"))
	blocks := blocksOf(page)
	const script = `set -e
systemctl start celld
redis-cli CL.POLICY SET api 100/1d
redis-cli CL.TAKE k @api COST 60
systemctl stop celld # what it has answered is in the file
systemctl start celld
%s
redis-cli CL.TAKE k @api COST 30
redis-cli CL.POLICY SET later 1/1d
%s
redis-cli CL.TAKE k @api PEEK
redis-cli CL.POLICY LIST
`
	shims := map[string]string{
		"redis-cli": celldtest.Need(t, "redis-cli") + " -p " + port + ` "$@"`,
		"chown":     "",
		"systemctl": strings.NewReplacer("CELLD", "CELLD_PORT="+port+" "+harness.Binary(t), "LIVE", live).Replace(`
if [ $1 = start ]; then
	CELLD --dir LIVE --appendonly yes > /dev/null 2>&1 &
	echo $! > pid
	for i in $(seq 600); do CELLD ready 2> /dev/null && exit; sleep 0.1; done
	exit 1
fi
kill $(< pid)
while kill -0 $(< pid) 2> /dev/null; do sleep 0.05; done`),
	}
	out, err := harness.Bash(t, fmt.Sprintf(script, blocks[0].typed, blocks[1].typed), dir, shims).Output()
	if err != nil || !regexp.MustCompile(`(?s)AOF .*is valid.*\n0\n100\n40\n-1\n\d+\n0\n0\napi\n100/1d\n$`).Match(out) {
		t.Errorf("%v: %s", err, out)
	}
}

// TestGoPage imports celld's packages from another module, as docs/how-to/go.md says, and runs the program that it shows.
func TestGoPage(t *testing.T) {
	t.Parallel()
	page, dir := celldtest.ReadFile(t, "../../docs/how-to/go.md"), t.TempDir()
	module := filepath.Join(dir, "celld")
	for _, folder := range []string{"cell", "store", "internal", ".ci"} {
		if err := os.CopyFS(filepath.Join(module, folder), os.DirFS("../../"+folder)); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"go.mod", "go.sum", "Makefile"} {
		copyFile(t, "../../"+file, filepath.Join(module, file))
	}
	harness.Tool(t, "git", "init", "-q", module)
	path := regexp.MustCompile(`(?m)^make module NAME=(\S+)$`).FindStringSubmatch(page)[1]
	harness.Tool(t, "make", "-C", module, "module", "NAME="+path)
	program := filepath.Join(dir, "program")
	if err := os.Mkdir(program, 0o755); err != nil {
		t.Fatal(err)
	}
	celldtest.WriteFile(t, blocks(page, "go")[0], program, "main.go")
	celldtest.WriteFile(t, strings.ReplaceAll("module program\n\ngo 1.26.0\n\nrequire M v0.0.0\n\nreplace M => ../celld\n", "M ", path+" "),
		program, "go.mod")
	copyFile(t, "../../go.sum", filepath.Join(program, "go.sum"))
	if got := harness.Tool(t, "go", "-C", program, "run", "-mod=mod", "."); got != "false\nfalse\ntrue\n" {
		t.Errorf("it prints %q", got)
	}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z/]+)` \\|").FindAllStringSubmatch(page, -1) {
		if files, _ := filepath.Glob("../../" + row[1] + "/*.go"); len(files) == 0 {
			t.Errorf("there is no package %s", row[1])
		}
	}
}
