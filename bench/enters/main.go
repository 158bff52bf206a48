// Command enters prints which packages and files of celld a call runs through: those with a statement that runs each time.
//
//	go -C bench run ./enters [-v] [directory of celld's sources]
//
// It builds celld with counters of statements, makes a thousand calls one by one, and lists what has run a thousand times.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const calls = 1000

// call is a kind of call: its command, or a path and a body of the HTTP port.
type call struct {
	name    string
	command string
	path    string
	body    string
	engine  bool
}

var kinds = []call{
	{name: "CL.THROTTLE", command: "CL.THROTTLE k 100000 100000 1"},
	{name: "CL.TAKE", command: "CL.TAKE k 100000/1s"},
	{name: "POST /v1/take", path: "/v1/take", body: `{"key":"k","limits":["100000/1s"]}`},
	{name: "POST /v1/give", path: "/v1/give", body: `{"key":"k","limit":"100000/1s","n":1}`},
	{name: "GET /v1/show/k", path: "/v1/show/k"},
	{name: "POST /throttle", path: "/throttle", body: `{"key":"t","max_burst":100000,"count_per_period":100000,"period":1}`},
	{name: "GET on an engine", command: "GET k", engine: true},
	{name: "CL.TAKE on an engine", command: "CL.TAKE k 100000/1s", engine: true},
}

func main() {
	log.SetFlags(0)
	verbose := flag.Bool("v", false, "list the files")
	flag.Parse()
	sources := ".."
	if flag.NArg() > 0 {
		sources = flag.Arg(0)
	}
	dir, err := os.MkdirTemp("", "enters")
	check(err)
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "celld")
	build := exec.Command("go", "build", "-cover", "-covermode=atomic", "-coverpkg=celld/...", "-o", binary, ".")
	build.Dir, build.Stderr = sources, os.Stderr
	check(build.Run())
	fmt.Printf("%-22s %8s %8s\n", "", "packages", "files")
	for i, c := range kinds {
		files := c.enters(binary, filepath.Join(dir, strconv.Itoa(i)))
		packages := map[string]bool{}
		for file := range files {
			packages[path.Dir(file)] = true
		}
		fmt.Printf("%-22s %8d %8d\n", c.name, len(packages), len(files))
		if *verbose {
			for _, file := range slices.Sorted(maps.Keys(files)) {
				fmt.Println("   ", file)
			}
		}
	}
}

// enters are the files that each call runs through. dir is for a server of its own.
func (c *call) enters(binary, dir string) map[string]bool {
	counters := filepath.Join(dir, "counters")
	check(os.MkdirAll(counters, 0o700))
	port, web := freePort(), freePort()
	args := []string{"--port", port, "--http-bind", "127.0.0.1:" + web, "--dir", dir, "--save", ""}
	if c.engine {
		engine := freePort()
		_, stop := start(exec.Command("redis-server", "--port", engine, "--save", "", "--dir", dir), engine)
		defer stop()
		args = append(args, "--store", "redis://127.0.0.1:"+engine)
	}
	celld := exec.Command(binary, args...)
	celld.Env = append(os.Environ(), "GOCOVERDIR="+counters)
	conn, stop := start(celld, port)
	replies := bufio.NewReader(conn)
	for range calls {
		if c.path != "" {
			c.ask("http://127.0.0.1:" + web + c.path)
			continue
		}
		_, err := io.WriteString(conn, c.command+"\r\n")
		check(err)
		skip(replies)
	}
	stop()
	text, err := exec.Command("go", "tool", "covdata", "textfmt", "-i", counters, "-o", "/dev/stdout").Output()
	check(err)
	files := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		file, rest, _ := strings.Cut(line, ":")
		fields := strings.Fields(rest)
		if n, err := strconv.Atoi(fields[len(fields)-1]); err == nil && n >= calls {
			files[file] = true
		}
	}
	return files
}

func (c *call) ask(url string) {
	ask := func() (*http.Response, error) { return http.Get(url) }
	if c.body != "" {
		ask = func() (*http.Response, error) { return http.Post(url, "application/json", strings.NewReader(c.body)) }
	}
	r, err := ask()
	check(err)
	_, err = io.Copy(io.Discard, r.Body)
	check(err)
	check(r.Body.Close())
	if r.StatusCode != http.StatusOK {
		log.Fatal(url, ": ", r.Status)
	}
}

// skip reads a reply.
func skip(r *bufio.Reader) {
	line, err := r.ReadString('\n')
	check(err)
	n, _ := strconv.Atoi(strings.TrimSpace(line[1:]))
	switch line[0] {
	case '-':
		log.Fatal(line)
	case '*':
		for range n {
			skip(r)
		}
	case '$':
		if n >= 0 {
			_, err = r.Discard(n + len("\r\n"))
			check(err)
		}
	}
}

// start starts a server that listens on a port. stop ends it.
func start(server *exec.Cmd, port string) (conn net.Conn, stop func()) {
	check(server.Start())
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		var err error
		if conn, err = net.Dial("tcp", "127.0.0.1:"+port); err == nil {
			break
		}
		if time.Now().After(deadline) {
			log.Fatal(err)
		}
	}
	return conn, func() {
		conn.Close()
		check(server.Process.Signal(syscall.SIGTERM))
		_ = server.Wait()
	}
}

func freePort() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
