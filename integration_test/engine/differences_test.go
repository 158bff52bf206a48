package engine

import "strings"

// otherConversations are files of resp/testdata/redis and scripts with settings of their own, by what these are about.
var otherConversations = map[string]string{"acl": "users, who outlive a paragraph", "auth": "a password",
	"latency": "what one paragraph counts is read in the next"}

// differences are lines, by their beginnings, from which on an engine answers otherwise than memory, by the reason.
var differences = map[string]string{
	`raw "CLIENT REPLY OFF\r\nEVAL \"return redis.call('SET', 'q',`: "scripts have the keys that they name, and q is not named",
}

// clusterDifferences are those of a Cluster.
var clusterDifferences = map[string]string{
	"SCAN": "a cursor goes from master to master, so it may be not 0 behind the last key",
}

func differs(line string, cluster bool) bool {
	for beginning := range differences {
		if strings.HasPrefix(line, beginning) {
			return true
		}
	}
	for beginning := range clusterDifferences {
		if cluster && strings.HasPrefix(line, beginning) {
			return true
		}
	}
	return false
}
