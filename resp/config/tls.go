package config

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"celld/resp/certs"
)

// tlsConfig are the settings of TLS for clients.
type tlsConfig struct {
	Port          *Param[int64]
	Cert          *Param[string]
	Key           *Param[string]
	KeyPass       *Param[string]
	ClientCert    *Param[string]
	ClientKey     *Param[string]
	CA            *Param[string]
	CADir         *Param[string]
	Clients       *Param[string]
	ClientsUser   *Param[string]
	Protocols     *Param[string]
	Ciphers       *Param[string]
	Suites        *Param[string]
	MaxHandshakes *Param[int64]

	Keeper *certs.Keeper // nil: nobody is served by TLS
}

func (c *tlsConfig) rows() []Setting {
	return []Setting{
		{Name: "tls-port", Group: groupTLS, Value: In(&c.Port, NewInt(0, 0, 65535, "port")), Help: "TCP port of TLS; 0: none. With --port 0 there is no plain TCP then"},
		{Name: "tls-cert-file", Group: groupTLS, Value: In(&c.Cert, NewText("", "path", CheckPath)), Help: "celld's certificate, in PEM, followed by the certificates that vouch for it; read again when it changes"},
		{Name: "tls-key-file", Group: groupTLS, Value: In(&c.Key, NewText("", "path", CheckPath)), Help: "its key, in PEM"},
		{Name: "tls-key-file-pass", Group: groupTLS, Value: In(&c.KeyPass, NewSecret("text", Hidden)), Secret: true, Help: "passphrase of an encrypted key; other users of the machine can see flags, so prefer the environment"},
		{Name: "tls-ca-cert-file", Group: groupTLS, Value: In(&c.CA, NewText("", "path", CheckPath)), Help: "certificates that vouch for clients, in PEM"},
		{Name: "tls-ca-cert-dir", Group: groupTLS, Value: In(&c.CADir, NewText("", "path", CheckPath)), Help: "directory of such files"},
		{Name: "tls-auth-clients", Group: groupTLS, Value: In(&c.Clients, newEnum("yes", "no", "optional")), Help: "whether clients must show a certificate, need not, or may"},
		{Name: "tls-auth-clients-user", Group: groupTLS, Value: In(&c.ClientsUser, newEnum("off", "CN", "URI")), Help: "part of a client's certificate that names its user; off: none"},
		{Name: "tls-protocols", Group: groupTLS, Value: In(&c.Protocols, NewText("TLSv1.2 TLSv1.3", "words", Readable(parseProtocols))), Help: "versions of TLS"},
		{Name: "tls-ciphers", Group: groupTLS, Value: In(&c.Ciphers, NewText("", "names", Readable(parseCiphers))), Help: "ciphers of TLS 1.2, by OpenSSL's names, separated by colons; empty: Go's choice"},
		{Name: "tls-ciphersuites", Group: groupTLS, Value: In(&c.Suites, NewText("", "names", checkSuites)), Help: "must be empty: Go chooses the ciphers of TLS 1.3"},
		{Name: "tls-max-handshakes", Group: groupTLS, Value: In(&c.MaxHandshakes, NewInt(1000, 1, 1<<20, "n")), Mutable: true, Help: "most unfinished handshakes; one more ends the oldest"},
		{Name: "tls-client-cert-file", Group: groupTLS, Value: In(&c.ClientCert, NewText("", "path", CheckPath)), Help: "certificate that celld ping and celld ready show; the default is --tls-cert-file"},
		{Name: "tls-client-key-file", Group: groupTLS, Value: In(&c.ClientKey, NewText("", "path", CheckPath)), Help: "its key"},
	}
}

// load reads the certificates, also for doors.
func (c *tlsConfig) load(doors []Door) error {
	needer, all := "", []string{"--tls-port"}
	for _, d := range doors {
		if all = append(all, "--"+d.Name+"-tls"); d.TLS {
			needer = cmp.Or(needer, all[len(all)-1])
		}
	}
	if c.Port.Get() != 0 {
		needer = all[0]
	}
	if needer == "" {
		for name, path := range map[string]string{"tls-cert-file": c.Cert.Get(), "tls-key-file": c.Key.Get()} {
			if path != "" {
				last := len(all) - 1
				names := strings.TrimPrefix(strings.Join(all[:last], ", ")+" or "+all[last], " or ")
				return fmt.Errorf("--%s is for %s, which are not set", name, names)
			}
		}
		return nil
	}
	var missing []string
	if c.Cert.Get() == "" {
		missing = append(missing, "--tls-cert-file")
	}
	if c.Key.Get() == "" {
		missing = append(missing, "--tls-key-file")
	}
	if c.Clients.Get() != "no" && c.CA.Get() == "" && c.CADir.Get() == "" {
		missing = append(missing, "--tls-ca-cert-file (or --tls-ca-cert-dir, or --tls-auth-clients no)")
	}
	switch {
	case len(missing) > 0:
		return errors.New(needer + " needs " + strings.Join(missing, " and "))
	case c.ClientsUser.Get() != "off" && c.Clients.Get() == "no":
		return errors.New("--tls-auth-clients-user needs certificates, which --tls-auth-clients no does not ask for")
	case (c.ClientCert.Get() == "") != (c.ClientKey.Get() == ""):
		return errors.New("--tls-client-cert-file and --tls-client-key-file must be given together")
	}
	files := certs.Files{
		Cert: c.Cert.Get(), Key: c.Key.Get(), Passphrase: c.KeyPass.Get(), CA: c.CA.Get(), CADir: c.CADir.Get(),
		Clients: map[string]tls.ClientAuthType{
			"yes": tls.RequireAndVerifyClientCert, "no": tls.NoClientCert, "optional": tls.VerifyClientCertIfGiven,
		}[c.Clients.Get()],
	}
	files.Versions, _ = parseProtocols(c.Protocols.Get())
	files.Ciphers, _ = parseCiphers(c.Ciphers.Get())
	var err error
	if c.Keeper, err = certs.Open(files); err != nil {
		return fmt.Errorf("TLS: %w", err)
	}
	return nil
}

// checkCertificates finds certificates that are not valid at that time. A start warns only of the one that clients see.
func (c *Config) checkCertificates(now time.Time) (err error) {
	if k := c.TLS.Keeper; k != nil {
		if wrong := k.Valid(now); wrong != nil {
			err = fmt.Errorf("TLS: clients refuse the certificate: %w", wrong)
		}
	}
	if path := c.TLS.ClientCert.Get(); path != "" {
		pair, wrong := certs.ReadPair(path, c.TLS.ClientKey.Get(), c.TLS.KeyPass.Get())
		if wrong == nil {
			wrong = certs.Valid(pair, now)
		}
		if wrong != nil {
			err = errors.Join(err, fmt.Errorf("celld ready fails with the certificate of --tls-client-cert-file: %s: %w", path, wrong))
		}
	}
	return err
}

// warnings are lines about certificates that Check lets pass.
func (c *Config) warnings() (lines []string) {
	if k := c.TLS.Keeper; k != nil && k.EndsSoon(time.Now()) {
		ends := k.NotAfter().UTC().Format(time.RFC3339)
		lines = append(lines, fmt.Sprintf("the certificate ends soon: %s is valid until %s", c.TLS.Cert.Get(), ends))
	}
	return lines
}

// parseProtocols reads the least and the highest version. Empty is both, as in Redis.
func parseProtocols(text string) (versions [2]uint16, err error) {
	for _, word := range strings.Fields(text) {
		version := uint16(tls.VersionTLS12)
		switch strings.ToLower(word) {
		case "tlsv1.2":
		case "tlsv1.3":
			version = tls.VersionTLS13
		default:
			return versions, errors.New("argument must be TLSv1.2, TLSv1.3, or both")
		}
		if versions[0] == 0 || version < versions[0] {
			versions[0] = version
		}
		versions[1] = max(versions[1], version)
	}
	if versions[0] == 0 {
		versions = [2]uint16{tls.VersionTLS12, tls.VersionTLS13}
	}
	return versions, nil
}

// ciphers are OpenSSL's names of those ciphers of TLS 1.2 that Go takes for secure.
var ciphers = map[string]uint16{
	"ECDHE-ECDSA-AES128-GCM-SHA256": tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
	"ECDHE-ECDSA-AES256-GCM-SHA384": tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
	"ECDHE-ECDSA-CHACHA20-POLY1305": tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
	"ECDHE-RSA-AES128-GCM-SHA256":   tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
	"ECDHE-RSA-AES256-GCM-SHA384":   tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
	"ECDHE-RSA-CHACHA20-POLY1305":   tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
	"ECDHE-ECDSA-AES128-SHA":        tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA,
	"ECDHE-ECDSA-AES256-SHA":        tls.TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA,
	"ECDHE-RSA-AES128-SHA":          tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA,
	"ECDHE-RSA-AES256-SHA":          tls.TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA,
}

func parseCiphers(text string) (ids []uint16, err error) {
	for _, name := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(": ,", r) }) {
		id, ok := ciphers[strings.ToUpper(name)]
		if !ok {
			return nil, fmt.Errorf("argument must be of %s", strings.Join(slices.Sorted(maps.Keys(ciphers)), ":"))
		}
		ids = append(ids, id)
	}
	return ids, nil
}

func checkSuites(text string) error {
	if text != "" {
		return errors.New("argument must be empty: Go chooses the ciphers of TLS 1.3")
	}
	return nil
}
