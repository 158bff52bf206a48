package resp

import "fmt"

func infoPersistence(w *infoWriter, s *Session) {
	p := s.srv.persist
	st, load := p.Status(), p.Loading()
	flag := func(on bool) int {
		if on {
			return 1
		}
		return 0
	}
	status := func(err error) string {
		if err != nil {
			return "err"
		}
		return "ok"
	}
	seconds := func(ns int64) int64 {
		if ns < 0 {
			return -1
		}
		return ns / 1e9
	}
	since := func(on bool, beganNS int64) int64 {
		if !on {
			return -1
		}
		return (s.nowNS - beganNS) / 1e9
	}
	w.field("loading", flag(s.srv.gate.has(gateLoading)))
	w.field("async_loading", 0)
	w.field("rdb_changes_since_last_save", st.ChangesSince)
	w.field("rdb_bgsave_in_progress", flag(st.Saving))
	w.field("rdb_last_save_time", s.srv.store.WallNS(st.LastSaveNS)/1e9)
	w.field("rdb_last_bgsave_status", status(st.SaveErr))
	w.field("rdb_last_bgsave_time_sec", seconds(st.SaveTookNS))
	w.field("rdb_current_bgsave_time_sec", since(st.Saving, st.SaveBeganNS))
	w.field("rdb_saves", st.Saves)
	w.field("rdb_last_cow_size", 0) // nothing is forked
	w.field("rdb_last_load_keys_expired", st.Loaded.Expired)
	w.field("rdb_last_load_keys_loaded", st.Loaded.Keys)
	w.field("aof_enabled", flag(st.AOF))
	w.field("aof_rewrite_in_progress", flag(st.Rewriting))
	w.field("aof_rewrite_scheduled", flag(st.RewriteScheduled))
	w.field("aof_last_rewrite_time_sec", seconds(st.RewriteTookNS))
	w.field("aof_current_rewrite_time_sec", since(st.Rewriting, st.RewriteBeganNS))
	w.field("aof_last_bgrewrite_status", status(st.RewriteErr))
	w.field("aof_rewrites", st.Rewrites)
	w.field("aof_last_write_status", status(st.AOFErr))
	w.field("aof_last_cow_size", 0)
	if st.AOF {
		w.field("aof_current_size", st.AOFSize)
		w.field("aof_base_size", st.AOFBaseSize)
		w.field("aof_pending_rewrite", 0)
		w.field("aof_buffer_length", st.AOFPending)
		w.field("aof_write_errors", st.AOFFailures)
		w.field("aof_pending_bio_fsync", 0)
		w.field("aof_delayed_fsync", 0)
	}
	if load.Loading {
		w.field("loading_start_time", load.BeganNS/1e9)
		w.field("loading_total_bytes", load.Total)
		w.field("loading_loaded_bytes", load.Done)
		w.field("loading_loaded_perc", fmt.Sprintf("%.2f", load.Percent()))
		w.field("loading_eta_seconds", load.SecondsLeft())
	}
}
