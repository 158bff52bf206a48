//go:build linux

package main

import "testing"

func TestParseMounts(t *testing.T) {
	const mounts = "/dev/vda / ext4 rw,relatime 0 0\n" +
		"tmpfs /tmp tmpfs rw 0 0\n" +
		"/dev/vdb /tmp/disk xfs rw 0 0\n" +
		"/dev/vdc /tmp/disk ext4 rw 0 0\n"
	for _, test := range []struct{ path, kind, device string }{
		{"/tmp", "tmpfs", "tmpfs"},
		{"/tmp/x", "tmpfs", "tmpfs"},
		{"/tmpx", "ext4", "/dev/vda"},
		{"/", "ext4", "/dev/vda"},
		{"/tmp/disk/x", "ext4", "/dev/vdc"},
	} {
		if kind, device := parseMounts(mounts, test.path); kind != test.kind || device != test.device {
			t.Errorf("%s: %s on %s", test.path, kind, device)
		}
	}
	if kind, _ := parseMounts("", "/"); kind != "unknown" {
		t.Errorf("no mounts: %s", kind)
	}
}

func TestSyncTime(t *testing.T) {
	if took, err := syncTime(t.TempDir()); took <= 0 || err != nil {
		t.Errorf("%v, %v", took, err)
	}
}
