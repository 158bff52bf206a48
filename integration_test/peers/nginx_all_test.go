//go:build all

package peers

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

const nginxConfig = `
daemon off;
master_process off;
pid nginx.pid;
error_log stderr crit;
events {}
http {
	access_log off;
	client_body_temp_path body;
	proxy_temp_path proxy;
	fastcgi_temp_path fastcgi;
	uwsgi_temp_path uwsgi;
	scgi_temp_path scgi;

	limit_req_status 429;
	limit_req_zone $arg_key zone=slow:1m rate=6r/m;
	limit_req_zone $arg_key zone=fast:1m rate=20r/s;
	limit_req_zone $arg_key zone=paced:1m rate=5r/s;

	limit_conn_status 429;
	limit_conn_zone $arg_key zone=held:1m;

	geo $arg_ip $verdict {
		default limit;
		10.0.0.0/8 allow;
		10.6.6.0/24 deny;
		192.0.2.7 deny;
		2001:db8::/32 allow;
		2001:db8:bad::/48 deny;
	}
	map $verdict $limited_ip {
		allow "";
		default $arg_ip;
	}
	limit_req_zone $limited_ip zone=listed:1m rate=6r/m;

	server {
		listen unix:nginx.sock;
		root .;
		location /slow {
			limit_req zone=slow burst=7 nodelay;
			try_files /ok =404;
		}
		location /strict {
			limit_req zone=slow;
			try_files /ok =404;
		}
		location /fast {
			limit_req zone=fast burst=4 nodelay;
			try_files /ok =404;
		}
		location /queued {
			limit_req zone=paced burst=4;
			try_files /ok =404;
		}
		location /later {
			limit_req zone=paced burst=5 delay=2;
			try_files /ok =404;
		}
		location /held {
			limit_conn held 3;
			try_files /large =404;
		}
		location /listed {
			if ($verdict = deny) {
				return 403;
			}
			limit_req zone=listed burst=1 nodelay;
			try_files /ok =404;
		}
	}
}
`

// startNginx runs nginx until the test ends. It returns a function that asks nginx for a path, and reports whether that passed.
func startNginx(t *testing.T) (passes func(path string) bool) {
	t.Helper()
	get := startNginxClient(t)
	return func(path string) bool {
		t.Helper()
		body, passed := get(path)
		io.Copy(io.Discard, body)
		body.Close()
		return passed
	}
}

// startNginxClient is startNginx for those who read what is sent to them.
func startNginxClient(t *testing.T) (get func(path string) (body io.ReadCloser, passed bool)) {
	t.Helper()
	path := celldtest.Need(t, "nginx")
	dir, err := os.MkdirTemp("", "nginx-") // as for redis-server
	if err != nil {
		t.Fatal(err)
	}
	celldtest.WriteFile(t, nginxConfig, dir, "nginx.conf")
	celldtest.WriteFile(t, "ok", dir, "ok")
	celldtest.WriteFile(t, strings.Repeat("slow", 1<<20), dir, "large") // more than a socket holds
	cmd := exec.Command(path, "-p", dir, "-c", "nginx.conf", "-e", "stderr")
	cmd.Dir = dir // unix:nginx.sock
	client := &http.Client{Timeout: harness.ReplyTimeout,
		Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(dir, "nginx.sock"))
		}}}
	celldtest.RunPeer(t, "nginx", dir, cmd, func() bool {
		reply, err := client.Get("http://nginx/ok")
		if err == nil {
			reply.Body.Close()
		}
		return err == nil
	})
	t.Cleanup(client.CloseIdleConnections)
	return func(path string) (io.ReadCloser, bool) {
		t.Helper()
		reply, err := client.Get("http://nginx" + path)
		if err != nil {
			t.Error(err) // callers may be goroutines, and these must not end a test
			return http.NoBody, false
		}
		switch reply.StatusCode {
		case http.StatusOK:
			return reply.Body, true
		case http.StatusTooManyRequests, http.StatusForbidden:
		default:
			t.Errorf("%s: %s", path, reply.Status)
		}
		return reply.Body, false
	}
}

// TestPeerNginx sends bursts, and calls at a pace above the rate, in turns to nginx and celld.
func TestPeerNginx(t *testing.T) {
	t.Parallel()
	passes, c := startNginx(t), harness.Dial(t, harness.Start(t).Addr)
	series := func(location, literal, key string, calls int, pace time.Duration) (nginx, celld int) {
		for range calls {
			if passes("/" + location + "?key=" + key) {
				nginx++
			}
			if c.Take(location+key, literal).Limited == 0 {
				celld++
			}
			time.Sleep(pace)
		}
		return nginx, celld
	}
	celldtest.Again(t, func(attempt string) string {
		if nginx, celld := series("slow", "6/1m,burst=8", attempt, 12, 0); nginx != 8 || celld != 8 {
			return fmt.Sprintf("burst=7: of 12 at once nginx lets %d through, celld %d", nginx, celld)
		}
		if nginx, celld := series("strict", "6/1m,burst=1", "strict"+attempt, 4, 0); nginx != 1 || celld != 1 {
			return fmt.Sprintf("no burst: of 4 at once nginx lets %d through, celld %d", nginx, celld)
		}
		began := time.Now()
		nginx, celld := series("fast", "20/1s,burst=5", attempt, 60, 15*time.Millisecond) // that is 3.3 times the rate
		most := 5 + int(time.Since(began).Seconds()*20)
		if nginx-celld > peerCalls || celld-nginx > peerCalls || celld > most || nginx > most || celld < 5 {
			return fmt.Sprintf("paced, in %v: nginx lets %d of 60 through, celld %d; most are %d", time.Since(began), nginx, celld, most)
		}
		return ""
	})
}

// TestPeerNginxLists gives the same nets to geo and to rules. Addresses on no list get a limit of two.
func TestPeerNginxLists(t *testing.T) {
	t.Parallel()
	passes, c := startNginx(t), harness.Dial(t, harness.Start(t).Addr)
	for _, rule := range []string{
		"ALLOW ip: CIDR 10.0.0.0/8", "DENY ip: CIDR 10.6.6.0/24", "DENY ip:192.0.2.7", "ALLOW ip: CIDR 2001:db8::/32",
		"DENY ip: CIDR 2001:db8:bad::/48",
	} {
		if got := c.Do(append([]string{"CL.RULE", "ADD"}, strings.Fields(rule)...)...); got != ":1\r\n" {
			t.Fatalf("CL.RULE ADD %s: %q", rule, got)
		}
	}
	for _, ip := range []string{
		"10.0.0.0", "10.0.0.1", "10.255.255.255", "9.255.255.255", "11.0.0.0", "10.6.5.255", "10.6.6.0", "10.6.6.255", "10.6.7.0",
		"192.0.2.6", "192.0.2.7", "192.0.2.8", "255.255.255.255", "0.0.0.0",
		"2001:db8::", "2001:db8::1", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff",
		"2001:db9::", "2001:db7:ffff::1", "2001:db8:bad::", "2001:db8:bad:1::1", "2001:db8:bae::1", "2001:db8:bac:ffff::", "::1", "::",
	} {
		var nginx, celld []bool
		for range 4 {
			nginx = append(nginx, passes("/listed?ip="+ip))
			celld = append(celld, c.Take("ip:"+ip, "6/1m,burst=2").Limited == 0)
		}
		if fmt.Sprint(nginx) != fmt.Sprint(celld) {
			t.Errorf("%s: nginx %v, celld %v", ip, nginx, celld)
		}
	}
	if got := c.Do("DBSIZE"); got != ":10\r\n" { // of what is on no list
		t.Errorf("DBSIZE: %q", got)
	}
}
