//go:build all

package tls

import (
	"strings"
	"testing"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// TestJedis gives Jedis a certificate of its own, by Java's properties, and a password or the user that the certificate names.
func TestJedis(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	classes := harness.JavaClasses(t, "../../examples/java-jedis")
	dir := t.TempDir()
	harness.Tool(t, "keytool", "-importcert", "-noprompt", "-storepass", "sesame", "-file", w.ca.File, "-keystore", dir+"/trust")
	harness.Tool(t, "openssl", "pkcs12", "-export", "-in", w.mine, "-inkey", w.myKey, "-out", dir+"/key", "-passout", "pass:sesame")
	trust := []string{"-Djavax.net.ssl.trustStore=" + dir + "/trust", "-Djavax.net.ssl.trustStorePassword=sesame"}
	key := append(trust, "-Djavax.net.ssl.keyStore="+dir+"/key", "-Djavax.net.ssl.keyStorePassword=sesame")
	_, byPassword := w.start(t, "--requirepass", "sesame")
	acl := dir + "/users.acl"
	celldtest.WriteFile(t, "user default off\nuser app on ~java +cl.throttle +client|setinfo +hello\n", acl)
	_, byName := w.start(t, "--aclfile", acl, "--tls-auth-clients-user", "CN")
	for _, test := range []struct {
		flags   []string
		url     string
		version string
		want    string
	}{
		{key, "rediss://:sesame@" + byPassword, "TLSv1.3", "[0, 16, 15, -1, 2]\n"},
		{key, "rediss://" + byName, "TLSv1.2", "[0, 16, 15, -1, 2]\n"},
		{trust, "rediss://:sesame@" + byPassword, "TLSv1.3", ""},
	} {
		args := append(test.flags[:len(test.flags):len(test.flags)], "-Djdk.tls.client.protocols="+test.version, "-classpath", classes,
			"testdata/Secure.java", test.url)
		cmd := harness.Command(t, celldtest.Need(t, "java"), args...)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		if out, err := cmd.Output(); string(out) != test.want || (err == nil) != (test.want != "") {
			t.Errorf("%s %s: %v, %q\n%s", test.version, test.url, err, out, stderr.String())
		}
	}
}
