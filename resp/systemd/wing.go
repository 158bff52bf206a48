package systemd

import "celld/resp"

// Wing is celld's side of systemd.
func Wing() resp.Wing {
	n := Notifier{}
	return resp.Wing{
		Open: func(o *resp.Options) (err error) {
			n.Log = o.Log
			o.Inherited, err = Sockets()
			return err
		},
		Tell: func(srv *resp.Server, state resp.State, addrs []string) {
			switch state {
			case resp.Loading:
				n.Loading()
			case resp.Ready:
				n.Ready(addrs...)
				go n.Watch(srv.Decides)
			case resp.Reloading:
				n.Reloading()
			case resp.Reloaded:
				n.Ready(addrs...)
			case resp.Stopping:
				n.Stopping()
			}
		},
	}
}
