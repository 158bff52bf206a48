package resp

import (
	"context"
	"errors"

	"celld/cell"
	"celld/resp/door"
	"celld/resp/metrics"
	"celld/store"
)

// readyKey is the key that Ready looks at. Nothing is stored under it.
const readyKey = "celld:readyz"

// Ready returns nil where calls are decided now, and else why not, in one line without secrets. It has one decided by store and,
// where there is one, engine. That only looks, so a full table is ready.
func (srv *Server) Ready() error {
	err := srv.decide()
	if why := srv.NotReady(); why != "" { // what was decided without the engine does not count
		return errors.New(why)
	}
	if down := (*store.DownError)(nil); srv.inCluster() && errors.As(err, &down) { // it serves other slots, or will soon
		return nil
	}
	return err
}

// NotReady says in one line why the server should get no more calls, as far as that is known without a decision. INFO has it for celld
// ready, so that a probe that runs it and one that asks /readyz see the same. It is empty where nothing is known.
func (srv *Server) NotReady() string {
	if srv.life.leaving.Load() {
		return "the server is stopping"
	}
	if why := srv.engineAway(); why != "" {
		return "the engine is away: " + why
	}
	if err := srv.sessions.Persist.Refusal(); err != nil {
		return door.Misconf(err).Text
	}
	return ""
}

// engineAway says in one line why the engine does not answer, and is empty where it does or there is none.
func (srv *Server) engineAway() string {
	if why := srv.sessions.Port.Away(); why != nil {
		return metrics.Printable(why.Error())
	}
	return ""
}

func (srv *Server) inCluster() bool { return srv.sessions.Port.Facts().Kind == "cluster" }

// decide decides a call that only looks.
func (srv *Server) decide() error {
	l, _ := cell.ParseLimit("1/1s")
	r := []store.TakeRequest{{Calls: []store.Call{{Key: []byte(readyKey), Limit: &l}}, TakeOptions: store.TakeOptions{Mode: cell.Peek}}}
	err := srv.Door.Decide(r, nil)
	if err == nil && r[0].Err != nil && r[0].Err != store.ErrWrongType { // which a decision has found
		err = door.ErrorOf(r[0].Err)
	}
	return err
}

// Decides returns nil where the event loops go round and a call is decided, and otherwise why not, once ctx has ended. An engine that is
// away and a disk that is full count as well: the process works, and to restart it would mend neither.
func (srv *Server) Decides(ctx context.Context) error {
	if t := srv.carries.Load(); t != nil {
		if t.Settle(ctx); ctx.Err() != nil {
			return errors.New("an event loop is stuck")
		}
	}
	if err := srv.decide(); errors.Is(err, door.ErrScriptBusy) || errors.Is(err, door.ErrPanicked) {
		return err
	}
	return nil
}
