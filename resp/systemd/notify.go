package systemd

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"celld/resp"
)

// Notifier tells systemd how the service is.
type Notifier struct{ Log *slog.Logger }

// Tell tells systemd of a state, and people at which addresses the service is.
func (n Notifier) Tell(state resp.State, addrs []string) {
	switch state {
	case resp.Loading:
		n.tell("STATUS=loading")
	case resp.Ready, resp.Reloaded:
		n.tell(daemon.SdNotifyReady + "\nSTATUS=serving on " + strings.Join(addrs, " "))
	case resp.Reloading:
		n.tell(daemon.SdNotifyReloading + "\n" + daemon.SdNotifyMonotonicUsec() + "STATUS=reloading")
	case resp.Stopping:
		n.tell(daemon.SdNotifyStopping + "\nSTATUS=stopping")
	}
}

func (n Notifier) tell(state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		n.Log.Warn("cannot notify systemd", "state", state, "error", err)
	}
}

// Watch tells systemd's watchdog, where the unit has one, that the service works, twice in its time. It does so only when works has just
// returned nil, within that half. It goes on until the process ends.
func (n Notifier) Watch(works func(context.Context) error) {
	limit, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		n.Log.Warn("the watchdog of systemd is not notified", "error", err)
	}
	if err != nil || limit == 0 {
		return
	}
	for ticker := time.NewTicker(limit / 2); ; <-ticker.C {
		ctx, cancel := context.WithTimeout(context.Background(), limit/2)
		if err := works(ctx); err != nil {
			n.Log.Warn("the watchdog of systemd is not notified: no decision goes through", "error", err)
		} else {
			n.tell(daemon.SdNotifyWatchdog)
		}
		cancel()
	}
}
