package resp

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
)

// What INFO says of the server itself, of which much is the machine's.
func TestInfoServer(t *testing.T) {
	w := newWorld(t, "io-threads", "3", "port", "0", "bind", "127.0.0.1")
	listeners, err := w.Listen()
	if err != nil {
		t.Fatal(err)
	}
	for _, ln := range listeners {
		ln.Close()
	}
	port := listeners[0].Addr().(*net.TCPAddr).Port
	w.sleepMS(2*86_400_000 + 5_000)
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("# Server\r\nredis_version:7.2.4\r\ncelld_version:test\r\nredis_mode:standalone\r\nfiles_refused:0\r\nos:%s %s\r\narch_bits:%d\r\ngo_version:%s\r\nmultiplexing_api:%s\r\n"+
		"process_id:%d\r\nrun_id:%s\r\ntcp_port:%d\r\nserver_time_usec:1790172805000000\r\nuptime_in_seconds:172805\r\nuptime_in_days:2\r\nexecutable:%s\r\nconfig_file:\r\nlistener0:name=tcp,bind=127.0.0.1,port=%d\r\nio_threads_active:3\r\n",
		runtime.GOOS, runtime.GOARCH, 32<<(^uint(0)>>63), runtime.Version(), multiplexing(), os.Getpid(), w.instance.runID, port,
		executable, port)
	if got := w.connect().do("INFO", "server"); !strings.Contains(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if len(w.instance.runID) != 40 || newWorld(t).instance.runID == w.instance.runID {
		t.Errorf("run id %q", w.instance.runID)
	}
}
