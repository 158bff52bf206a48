package resp

import (
	"strings"
	"testing"
	"time"

	"celld/store"
	"celld/store/remote"
)

// CONFIG SET store-failure takes effect at once: while the engine has never been there, calls are decided by it.
func TestConfigSetStoreFailure(t *testing.T) {
	keys := store.New(store.Options{Shards: 1})
	engine, err := remote.Open(remote.Options{URL: "unix:///no/such/engine", Timeout: time.Minute, Policies: keys.Set})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	w := newWorld(t)
	w.Server = NewServer(Options{Config: NewConfig(), Store: keys, Engine: engine, Clock: func() int64 { return w.nowNS }, Version: "test"})
	c := w.connect()
	for _, mode := range []string{"error", "allow", "deny", "local,api=allow"} {
		c.want("CONFIG SET store-failure "+mode, "+OK\r\n")
		if is, _ := engine.Mode(); is != strings.Split(mode, ",")[0] {
			t.Errorf("store-failure is %s, and the mode %s", mode, is)
		}
	}
	c.want("CONFIG SET store-failure never", "-ERR CONFIG SET failed (possibly related to argument 'store-failure') - argument must be error, allow, deny or local, not 'never'\r\n")
	c.want("CONFIG GET store-failure", "*2\r\n$13\r\nstore-failure\r\n$15\r\nlocal,api=allow\r\n")
}
