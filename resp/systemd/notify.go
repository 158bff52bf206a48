package systemd

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// Notifier tells systemd how the service is.
type Notifier struct{ Log *slog.Logger }

// Ready tells that the service serves, for the first time or again after a reload. addrs are for people.
func (n Notifier) Ready(addrs ...string) {
	n.tell(daemon.SdNotifyReady + "\nSTATUS=serving on " + strings.Join(addrs, " "))
}

// Loading tells people that files are being loaded.
func (n Notifier) Loading() { n.tell("STATUS=loading") }

// Reloading tells that the service reloads its files.
func (n Notifier) Reloading() {
	n.tell(daemon.SdNotifyReloading + "\n" + daemon.SdNotifyMonotonicUsec() + "STATUS=reloading")
}

// Stopping tells that the service is about to end.
func (n Notifier) Stopping() { n.tell(daemon.SdNotifyStopping + "\nSTATUS=stopping") }

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
