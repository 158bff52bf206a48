// Package systemd is celld's side of systemd: it takes the sockets that systemd passes, and reports the state of the service. Without
// systemd its variables are not set, and the package does nothing.
//
//	inherited, err := systemd.Sockets()
//	n := systemd.Notifier{Log: log}
//	n.Tell(resp.Ready, addrs)
//	go n.Watch(server.Decides)
//
// The protocols are those of sd_notify(3), sd_watchdog_enabled(3) and sd_listen_fds(3). celld starts no other process, so none inherits
// NOTIFY_SOCKET.
package systemd
