package table

import "slices"

// OverheadBytes is what a key of up to 16 bytes takes without limits, by the estimate of MaxBytes and Stats.Bytes: 48 the slot, 11 the
// index, and 5 all that is not full. TestWhatKeysTake measures it.
const OverheadBytes = 64

// CostBytes is what a key of a length takes without limits, by the same estimate.
func CostBytes(keyLen int) int64 {
	switch {
	case keyLen <= InlineKey:
		return OverheadBytes
	case keyLen < HugeKey:
		return OverheadBytes + tailSize*int64((keyLen-headBytes+tailBytes-1)/tailBytes)
	}
	return OverheadBytes + tailSize + allocated(keyLen)
}

// allocated is the size of the block that the allocator gives for so many bytes.
func allocated(bytes int) int64 {
	if i, _ := slices.BinarySearch(blockSizes[:], uint16(bytes)); bytes <= 32<<10 {
		return int64(blockSizes[i])
	}
	const page = 8 << 10
	return int64(bytes+page-1) &^ (page - 1)
}

// blockSizes are the sizes of blocks up to 32 KB, as in the file sizeclasses.go of Go's runtime.
var blockSizes = [...]uint16{8, 16, 24, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256, 288, 320, 352, 384, 416, 448,
	480, 512, 576, 640, 704, 768, 896, 1024, 1152, 1280, 1408, 1536, 1792, 2048, 2304, 2688, 3072, 3200, 3456, 4096, 4864, 5376, 6144,
	6528, 6784, 6912, 8192, 9472, 9728, 10240, 10880, 12288, 13568, 14336, 16384, 18432, 19072, 20480, 21760, 24576, 27264, 28672, 32768}
