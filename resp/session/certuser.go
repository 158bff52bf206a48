package session

import (
	"crypto/x509"
	"encoding/asn1"

	"celld/resp/acl"
)

// Identify gives the session the user that the certificate of its peer names, if tls-auth-clients-user says that it does. A certificate
// that names nobody who may authenticate leaves the session as it is. The transport has verified the certificate.
//
// It is called after Open and holds a lane of execution: so whoever removes a user meets each session that has it.
func (s *Session) Identify(cert *x509.Certificate) {
	names := namesIn(cert, s.srv.Config.TLS.ClientsUser.Get())
	if len(names) == 0 {
		return
	}
	lane := s.srv.Execution.Lane(0)
	lane.RLock()
	defer lane.RUnlock()
	if u := s.srv.Users.FirstOn(names); u != nil {
		s.client.Certified = u
		s.become(u)
		return
	}
	s.srv.LogOf(&s.client, "a certificate names no user")
	s.nowNS = s.srv.Clock()
	s.srv.LogDenial(&s.client, acl.Entry{Reason: acl.DeniedCertificate, Context: "toplevel", Username: names[0], AtNS: s.nowNS})
}

var commonName = asn1.ObjectIdentifier{2, 5, 4, 3}

// namesIn returns the users that a certificate may stand for, the first before the others. One with several common names stands for
// nobody: TLS libraries disagree on which of them counts.
func namesIn(cert *x509.Certificate, field string) (names []string) {
	switch field {
	case "URI":
		for _, uri := range cert.URIs {
			names = append(names, uri.String())
		}
	case "CN":
		for _, part := range cert.Subject.Names {
			if name, _ := part.Value.(string); part.Type.Equal(commonName) && name != "" {
				names = append(names, name)
			}
		}
		if len(names) > 1 {
			return nil
		}
	}
	return names
}
