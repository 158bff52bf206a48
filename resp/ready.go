package resp

import (
	"errors"
	"strings"
)

// readyKey is the key that Ready looks at. Nothing is stored under it.
const readyKey = "celld:readyz"

// Ready returns nil where calls are decided now, and else why not, in one line without secrets. It has one decided by store and,
// where there is one, engine. That only looks, so a full table is ready.
func (srv *Server) Ready() error {
	if srv.leaving.Load() {
		return errors.New("the server is stopping")
	}
	_, err := srv.call("CL.TAKE", readyKey, "1/1s", "PEEK")
	if srv.engine != nil {
		for _, fact := range srv.engine.Facts() {
			if fact.Name == "store_away_because" { // --store-failure may have decided
				return errors.New("the store is away: " + strings.ReplaceAll(fact.Value, "\n", " "))
			}
		}
	}
	if failed := (*CallError)(nil); errors.As(err, &failed) && failed.Code() == "WRONGTYPE" { // which a decision has found
		return nil
	}
	return err
}
