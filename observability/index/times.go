package index

import (
	"encoding/binary"
	"errors"
	"maps"
	"math/bits"
	"slices"
)

// times counts runs by how long they took, in buckets that grow with the time: below 128 ms each millisecond has its own, above it 64
// buckets share the range from a power of two to the next. So a time that is read from it is at most 0.8 % off, and the counts of two
// sets of runs can be added or subtracted.
type times map[int]int64

const (
	exactBits  = 7                    // of the times with a bucket of their own
	exact      = 1 << exactBits       // the first that shares one
	perDouble  = exact / 2            // buckets from a power of two to the next
	maxBuckets = exact + 57*perDouble // of all times of 63 bits
)

// timeBucket is the bucket of a time in milliseconds.
func timeBucket(ms int64) int {
	if ms < exact {
		return int(max(ms, 0))
	}
	shift := bits.Len64(uint64(ms)) - exactBits
	return exact + (shift-1)*perDouble + int(ms>>shift) - perDouble
}

// middle is the time that stands for those of a bucket.
func middle(bucket int) int64 {
	if bucket < exact {
		return int64(bucket)
	}
	shift := (bucket-exact)/perDouble + 1
	low := int64((bucket-exact)%perDouble+perDouble) << shift
	return low + (int64(1)<<shift-1)/2
}

// add adds counts, or subtracts them if sign is -1.
func (t times) add(of times, sign int64) {
	for bucket, n := range of {
		if t[bucket] += sign * n; t[bucket] == 0 {
			delete(t, bucket)
		}
	}
}

// rank is the least time that is at least as long as a percentage of them; nil if there is none.
func (t times) rank(percent int64) *int64 {
	total := int64(0)
	for _, n := range t {
		total += n
	}
	left := (total*percent + 99) / 100
	for _, bucket := range slices.Sorted(maps.Keys(t)) {
		if left -= t[bucket]; left <= 0 {
			ms := middle(bucket)
			return &ms
		}
	}
	return nil
}

// pack is how a database keeps the counts: pairs of how far a bucket is from the one before, and its count.
func (t times) pack() []byte {
	out := make([]byte, 0, 4*len(t))
	before := 0
	for _, bucket := range slices.Sorted(maps.Keys(t)) {
		if t[bucket] > 0 {
			out = binary.AppendUvarint(binary.AppendUvarint(out, uint64(bucket-before)), uint64(t[bucket]))
			before = bucket
		}
	}
	return out
}

// addPacked adds counts as a database keeps them.
func (t times) addPacked(data []byte) error {
	bucket := 0
	for len(data) > 0 {
		step, n := binary.Uvarint(data)
		if n <= 0 {
			return errDamagedTimes
		}
		count, m := binary.Uvarint(data[n:])
		if m <= 0 || step >= maxBuckets || count > 1<<62 {
			return errDamagedTimes
		}
		if bucket += int(step); bucket >= maxBuckets {
			return errDamagedTimes
		}
		t[bucket] += int64(count)
		data = data[n+m:]
	}
	return nil
}

var errDamagedTimes = errors.New("read the times of runs: they are damaged")
