package resp

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
	names := namesIn(cert, s.srv.cfg.TLS.ClientsUser.Get())
	if len(names) == 0 {
		return
	}
	lane := s.srv.execution.lane(0)
	lane.RLock()
	defer lane.RUnlock()
	if u := s.srv.users.FirstOn(names); u != nil {
		s.certified = u
		s.become(u)
		return
	}
	s.tell("a certificate names no user")
	s.nowNS = s.srv.clock()
	s.logDenial(acl.DeniedCertificate, "toplevel", "", names[0])
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

// endCertified closes the connections of a user whom their certificates have authenticated. The caller holds the execution lock alone.
// That of the session that asks for it gets its reply first.
func (srv *service) endCertified(caller *Session, u *acl.User) {
	for _, s := range srv.clients.all() {
		switch {
		case s.certified != u || s.client.user.Load() != u:
		case s == caller:
			s.end = afterReply
		default:
			s.kill()
		}
	}
}
