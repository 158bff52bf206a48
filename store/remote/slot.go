package remote

import "strings"

// slots is how many a Cluster has.
const slots = 1 << 14

// slotOf is the slot of a key: the CRC16 of its hash tag, or of all of it (https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/).
func slotOf(key string) uint16 {
	if open := strings.IndexByte(key, '{'); open >= 0 {
		if length := strings.IndexByte(key[open+1:], '}'); length > 0 {
			key = key[open+1 : open+1+length]
		}
	}
	crc := uint16(0)
	for i := range len(key) {
		crc = crc<<8 ^ crcTable[byte(crc>>8)^key[i]]
	}
	return crc % slots
}

// crcTable is of CRC-16/XMODEM: the polynomial 0x1021, no reflection.
var crcTable = func() (table [256]uint16) {
	for i := range table {
		crc := uint16(i) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
		table[i] = crc
	}
	return table
}()
