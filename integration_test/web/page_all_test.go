//go:build all

package web

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

var pictures = flag.String("pictures", "", "directory to put pictures of the live page into")

// browser is a Chromium with one page, and keeps the complaints of the page.
type browser struct {
	context.Context
	t *testing.T

	mu         sync.Mutex
	complaints []string
}

func openBrowser(t *testing.T) *browser {
	t.Helper()
	path := celldtest.Need(t, "chromium")
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.IgnoreCertErrors,
		chromedp.UserDataDir(t.TempDir()), chromedp.Flag("disable-gpu", true))
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 3*time.Minute)
	t.Cleanup(cancel)
	b := &browser{Context: ctx, t: t}
	b.do() // opens it
	messages := chromedp.Console(ctx)
	go func() {
		for message, err := range messages {
			if err != nil {
				return
			}
			b.mu.Lock()
			b.complaints = append(b.complaints, message.Text)
			b.mu.Unlock()
		}
	}()
	return b
}

func (b *browser) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// eval returns what an expression of the page is.
func (b *browser) eval(expression string) string {
	b.t.Helper()
	result, err := chromedp.Run(b, chromedp.Evaluate[string]("String("+expression+")"))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return result
}

func (b *browser) eventually(expression, want string) {
	b.t.Helper()
	got := ""
	celldtest.Eventually(b.t, expression+" is "+want, func() bool { got = b.eval(expression); return strings.Contains(got, want) })
}

// quiet fails the test if there were complaints.
func (b *browser) quiet() { b.t.Helper(); b.quietBut() }

// quietBut fails for complaints that contain none of these words.
func (b *browser) quietBut(words ...string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, text := range b.complaints {
		if !slices.ContainsFunc(words, func(word string) bool { return strings.Contains(text, word) }) {
			b.t.Errorf("the page complains: %q", text)
		}
	}
	b.complaints = nil
}

// look sets the size and the colours.
func (b *browser) look(scheme string, width int64) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(width, 900))
	b.media("prefers-color-scheme", scheme)
}

// media sets what the page's viewer prefers.
func (b *browser) media(name, value string) {
	b.t.Helper()
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: name, Value: value}}}
	if _, err := chromedp.Call(b, emulation.SetEmulatedMedia, media); err != nil {
		b.t.Fatal(err)
	}
}

func (b *browser) picture(name string) {
	b.t.Helper()
	if *pictures == "" {
		return
	}
	png, err := chromedp.Run(b, chromedp.FullScreenshot(100))
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(*pictures, name+".png"), png, 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// The page shows what is decided, in light and dark, on a desk and on a phone, and complains of nothing. It says when celld is gone, and
// goes on when it is back.
func TestPage(t *testing.T) {
	addr, token := "127.0.0.1:"+harness.FreePort(t), tokenFile(t, "secret")
	run := func() (*harness.Server, *harness.Conn) {
		srv := harness.Spec{Dies: true,
			Flags: []string{"--http-bind", addr, "--http-token-file", token, "--appendonly", "yes", "--dir", filepath.Dir(token)}}.Start(t)
		c := harness.Dial(t, srv.Addr)
		c.Do("CL.POLICY", "SET", "api", "100/1h")
		return srv, c
	}
	srv, c := run()
	call := func(n int, key string) {
		for range n {
			c.Do("CL.TAKE", key, "@api")
		}
	}
	strange := `<img src=x onerror="document.title='broken'">`
	call(130, strange)
	b := openBrowser(t)
	b.look("light", 1200)
	b.do(chromedp.Navigate("http://x:secret@" + addr + "/"))
	b.eventually(`$("state").textContent`, "Running")
	b.eventually(`$("top").textContent`, strange+"30")
	b.eventually(`$("allowed-total").textContent`, "100")
	b.eventually(`$("cards").textContent`, "Append-only file")
	b.eventually(`$("cards").textContent`, "99.9 %")
	b.eventually(`document.querySelectorAll("img").length`, "0")
	celldtest.Eventually(t, "a rate of calls", func() bool {
		call(20, "k")
		return b.eval(`$("rate").textContent`) > "0" && strings.Contains(b.eval(`$("policies").textContent`), "api")
	})
	b.eventually(`$("chart").getAttribute("aria-label")`, " allowed and ")
	b.eventually(`$("chart").querySelectorAll(".line-a").length`, "1")
	colours := map[string]bool{}
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{1200, 760, 390, 320} {
			b.look(scheme, width)
			if got := b.eval(`document.documentElement.scrollWidth`); got != strconv.FormatInt(width, 10) {
				t.Errorf("%s, %d wide: the page is %s wide", scheme, width, got)
			}
			b.picture(scheme + "-" + strconv.FormatInt(width, 10))
		}
		colours[b.eval(`getComputedStyle(document.body).backgroundColor`)] = true
	}
	if len(colours) != 2 {
		t.Errorf("colours: %v", colours)
	}
	if got := b.eval(`document.getAnimations().length`); got != "1" {
		t.Errorf("%s animations", got)
	}
	b.media("prefers-reduced-motion", "reduce")
	if got := b.eval(`document.getAnimations().length`); got != "0" {
		t.Errorf("%s animations for who wants less", got)
	}
	b.quiet()

	srv.Cmd.Process.Kill()
	<-srv.Exited
	b.eventually(`$("state").textContent`, "No answer")
	b.eventually(`$("troubles").textContent`, "trying again")
	b.picture("gone")
	srv, c = run()
	b.eventually(`$("state").textContent`, "Running")
	b.eventually(`$("troubles").children.length`, "0")
	b.eventually(`$("limited-total").textContent`, "0")
	b.quietBut("ERR_CONNECTION_REFUSED")

	asked := func() string {
		_, _, body := srv.Get("/metrics", "Authorization", "Bearer secret")
		_, n, _ := strings.Cut(body, `celld_http_requests_total{code="200",page="stats"} `)
		n, _, _ = strings.Cut(n, "\n")
		return n
	}
	was := asked()
	celldtest.Eventually(t, "it asks again", func() bool { return asked() != was })
	b.eval(`Object.defineProperty(document, "hidden", {configurable: true, get: () => true}), document.dispatchEvent(new Event("visibilitychange"))`)
	b.eventually(`asking`, "false")
	was = asked()
	b.do(chromedp.Sleep(3 * time.Second))
	if now := asked(); now != was {
		t.Errorf("hidden, it has asked %s times and then %s", was, now)
	}
	b.eval(`delete document.hidden, document.dispatchEvent(new Event("visibilitychange"))`)
	celldtest.Eventually(t, "it asks again", func() bool { return asked() != was })
	b.quiet()
}

// The page is right at each size with all that operators meet: a table that is full of keys, a file that is refused, 200 policies with
// several limits, and a key of 512 bytes. Each list of keys is one click away.
func TestPageOfABadDay(t *testing.T) {
	policies := celldtest.TempFile(t, "api 100/1m\n")
	srv := start(t, "--max-keys", "300", "--maxmemory-policy", "noeviction", "--policies", policies)
	c := harness.Dial(t, srv.Addr)
	for n := range 200 {
		name := "plan-" + strconv.Itoa(n)
		c.Do("CL.POLICY", "SET", name, "5/1m", "100/1h,burst=10", "1000/1d,algo=slide", "10000/month,tz=Europe/Berlin")
		c.Do("CL.TAKE", "customer:"+strconv.Itoa(n%20), "@"+name, "COST", strconv.Itoa(1+n%9))
	}
	long := strings.Repeat("k", 512)
	for range 70 {
		c.Do("CL.TAKE", long, "5/1m")
	}
	for range 9 {
		c.Do("CL.TAKE", "near", "10/1h")
	}
	for n := range 400 {
		c.Do("CL.TAKE", "new:"+strconv.Itoa(n), "5/1h")
	}
	if got := c.Do("CL.TAKE", "one more", "5/1h"); got != "-OOM command not allowed when keys > 'max-keys'.\r\n" {
		t.Errorf("a full table: %q", got)
	}
	celldtest.WriteFile(t, "api\n", policies)
	srv.Logs("the table is full, and what is new is refused", "a file is refused")
	b := openBrowser(t)
	b.look("light", 1400)
	b.do(chromedp.Navigate("http://" + srv.HTTP() + "/"))
	b.eventually(`$("troubles").textContent`, "the table is full (max-keys)")
	b.eventually(`$("troubles").textContent`, "the file of --policies is refused")
	b.eventually(`$("policies").textContent`, "5/1m 100/1h,burst=10 1000/1d,algo=slide 10000/month,tz=Europe/Berlin")
	b.eventually(`$("no-policies").textContent`, "more policies are not shown")
	b.eventually(`$("top").textContent`, "kkkk")
	for tab, key := range map[string]string{"Calls": "near9", "Near": "near"} {
		b.eval(`tabs.find(tab => tab.textContent === "` + tab + `").click()`)
		b.eventually(`$("top").textContent`, key)
	}
	b.eval(`tabs[0].click()`)
	atEachSize(t, b, "bad-day")
	b.quiet()
}

// atEachSize sees that nothing is wider than the page, and that names have room, and takes pictures.
func atEachSize(t *testing.T, b *browser, name string) {
	t.Helper()
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{1400, 768, 390} {
			b.look(scheme, width)
			if got := b.eval(`document.documentElement.scrollWidth`); got != strconv.FormatInt(width, 10) {
				t.Errorf("%s, %d wide: the page is %s wide", scheme, width, got)
			}
			least := `Math.min(...[...$("policies").querySelectorAll("tbody th")].map(name => name.clientWidth)) >= 120`
			if got := b.eval(least); got != "true" {
				t.Errorf("%s, %d wide: names have too little room", scheme, width)
			}
			b.picture(name + "-" + scheme + "-" + strconv.FormatInt(width, 10))
		}
	}
}

// With an engine and TLS the page shows these, and what is wrong.
func TestPageOfAnEngine(t *testing.T) {
	port := harness.FreePort(t)
	srv := startSecure(t, "--tls-auth-clients", "no", "--store", "redis://127.0.0.1:"+port, "--store-failure", "allow")
	b := openBrowser(t)
	b.do(chromedp.Navigate("https://" + srv.HTTP() + "/"))
	b.eventually(`$("state").textContent`, "Trouble")
	b.eventually(`$("troubles").textContent`, "the engine is away: ")
	b.eventually(`$("cards").textContent`, "Who decidesstore-failure: allow")
	b.eventually(`$("cards").textContent`, "Certificateends in 23 h")
	b.eventually(`$("cards").querySelectorAll(".warn").length`, "2") // who decides, and the certificate
	b.eventually(`$("no-policies").textContent + $("no-top").textContent`, "No call has been decided.No call was denied.")
	atEachSize(t, b, "trouble")
	celldtest.StartRedis(t, "--port", port)
	b.eventually(`$("state").textContent`, "Running")
	b.eventually(`$("cards").textContent`, "Who decidesthe engine")
	b.eventually(`$("troubles").children.length`, "0")
	b.quiet()
}

// Code that breaks the rules does not run, and causes a complaint: this test would see it.
func TestPageRules(t *testing.T) {
	srv := start(t)
	b := openBrowser(t)
	b.do(chromedp.Navigate("http://" + srv.HTTP() + "/"))
	b.eventually(`$("state").textContent`, "Running")
	b.quiet()
	for _, test := range []struct{ attack, complaint string }{
		{`fetch("http://127.0.0.2:1/")`, "connect-src"},
		{`new Image().src = "http://127.0.0.2:1/"`, "img-src"},
		{`document.body.setAttribute("onclick", "document.title = 'broken'")`, "TrustedScript"},
		{`document.body.append(document.createElement("script")), document.body.lastChild.text = "document.title = 'broken'"`, "TrustedScript"},
		{`document.body.innerHTML = "<b>x</b>"`, "TrustedHTML"},
	} {
		_ = chromedp.Do(b, chromedp.Evaluate[chromedp.Void](test.attack)) // some are errors
		celldtest.Eventually(t, "a complaint of "+test.attack, func() bool {
			b.mu.Lock()
			defer b.mu.Unlock()
			return slices.ContainsFunc(b.complaints, func(text string) bool { return strings.Contains(text, test.complaint) })
		})
		b.mu.Lock()
		b.complaints = nil
		b.mu.Unlock()
	}
	if title := b.eval("document.title"); title != "celld" {
		t.Errorf("the title is %q", title)
	}
}
