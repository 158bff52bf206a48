package metrics

import (
	"fmt"
	"time"

	"celld/persistence"
	"celld/persistence/load"
)

// Files declares what a Disk knows of its files: its Status, and its progress while it loads, else nil. wall converts limit time to the
// wall clock's.
func Files(l *List, st persistence.Status, loading *load.Progress, wall func(nowNS int64) time.Time) {
	since := func(on bool, beganNS int64) time.Duration {
		if !on {
			return -1
		}
		return time.Duration(l.NowNS - beganNS)
	}
	taken := time.Time{}
	if st.Saves > 0 {
		taken = wall(st.LastSaveNS)
	}
	l.Field("async_loading", 0)
	l.Gauge(Metric{Field: "rdb_changes_since_last_save", Name: "celld_snapshot_changes", JSON: "files.snapshot.changes_since",
		Help: "Changes since the last good snapshot.", Value: st.ChangesSince})
	l.Field("rdb_bgsave_in_progress", st.Saving)
	l.Gauge(Metric{Field: "rdb_last_save_time", Name: "celld_snapshot_last_timestamp_seconds",
		Help: "Time of the last good snapshot, or of the start.", Value: wall(st.LastSaveNS)})
	l.Gauge(Metric{JSON: "files.snapshot.taken_unix_ms", Value: taken})
	l.Gauge(Metric{Field: "rdb_last_bgsave_status", Name: "celld_snapshot_failed", JSON: "files.snapshot.failed",
		Help: "1 if the last snapshot failed.", Value: Failed(st.SaveErr != nil)})
	l.Gauge(Metric{Field: "rdb_last_bgsave_time_sec", Name: "celld_snapshot_duration_seconds", Help: "How long the last snapshot took.",
		Value: time.Duration(st.SaveTookNS)})
	l.Field("rdb_current_bgsave_time_sec", since(st.Saving, st.SaveBeganNS))
	l.Counter(Metric{Field: "rdb_saves", Name: "celld_snapshots_total", Help: "Snapshots taken.", Value: st.Saves, Lasts: true})
	l.Field("rdb_last_cow_size", 0) // nothing is forked
	l.Field("rdb_last_load_keys_expired", st.Loaded.Expired)
	l.Field("rdb_last_load_keys_loaded", st.Loaded.Keys)
	appendOnly(l, &st, since(st.Rewriting, st.RewriteBeganNS))
	if loading != nil {
		l.Field("loading_start_time", loading.BeganNS/1e9)
		l.Field("loading_total_bytes", loading.Total)
		l.Field("loading_loaded_bytes", loading.Done)
		l.Field("loading_loaded_perc", fmt.Sprintf("%.2f", loading.Percent()))
		l.Field("loading_eta_seconds", loading.SecondsLeft())
	}
}

func appendOnly(l *List, st *persistence.Status, rewriting time.Duration) {
	l.Gauge(Metric{Field: "aof_enabled", Name: "celld_aof_enabled", Help: "1 with an append-only file.", Value: st.AOF})
	l.Field("aof_rewrite_in_progress", st.Rewriting)
	l.Field("aof_rewrite_scheduled", st.RewriteScheduled)
	l.Field("aof_last_rewrite_time_sec", time.Duration(st.RewriteTookNS))
	l.Field("aof_current_rewrite_time_sec", rewriting)
	l.Gauge(Metric{Field: "aof_last_bgrewrite_status", Name: "celld_aof_rewrite_failed", Help: "1 if the last rewrite failed.",
		Value: Failed(st.RewriteErr != nil)})
	l.Counter(Metric{Field: "aof_rewrites", Name: "celld_aof_rewrites_total", Help: "Rewrites of the append-only file.",
		Value: st.Rewrites, Lasts: true})
	l.Gauge(Metric{Field: "aof_last_write_status", Name: "celld_aof_failed", JSON: "files.append_only.failed",
		Help: "1 while changes do not reach the append-only file.", Value: Failed(st.AOFErr != nil)})
	l.Field("aof_last_cow_size", 0)
	l.Counter(Metric{Name: "celld_aof_fsyncs_total", Help: "Syncs of the append-only file.", Value: st.AOFSyncs})
	l.Counter(Metric{Name: "celld_aof_fsync_seconds_total", Help: "Seconds that syncs of the append-only file took.",
		Value: time.Duration(st.AOFSyncNS)})
	info := func(field string) string {
		if st.AOF {
			return field
		}
		return ""
	}
	l.Gauge(Metric{Field: info("aof_current_size"), Name: "celld_aof_size_bytes", JSON: "files.append_only.bytes",
		Help: "Size of the append-only file.", Value: st.AOFSize})
	l.Gauge(Metric{Field: info("aof_base_size"), Name: "celld_aof_base_size_bytes",
		Help: "Size of the append-only file after its last rewrite.", Value: st.AOFBaseSize})
	l.Field(info("aof_pending_rewrite"), 0)
	l.Gauge(Metric{Field: info("aof_buffer_length"), Name: "celld_aof_pending_bytes", JSON: "files.append_only.pending_bytes",
		Help: "Changes not yet in the append-only file.", Value: st.AOFPending})
	l.Counter(Metric{Field: info("aof_write_errors"), Name: "celld_aof_write_failures_total",
		Help: "Failed writes to the append-only file.", Value: st.AOFFailures, Lasts: true})
	l.Field(info("aof_pending_bio_fsync"), 0)
	l.Field(info("aof_delayed_fsync"), 0)
}
