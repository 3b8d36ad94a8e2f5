//go:build !linux

package measure

import "runtime/metrics"

// OwnUsage is that of this process as the Go runtime estimates it.
func OwnUsage() (Usage, error) {
	s := []metrics.Sample{
		{Name: "/cpu/classes/total:cpu-seconds"}, {Name: "/cpu/classes/idle:cpu-seconds"}, {Name: "/memory/classes/total:bytes"},
	}
	metrics.Read(s)
	return Usage{CPUSeconds: s[0].Value.Float64() - s[1].Value.Float64(), PeakBytes: s[2].Value.Uint64(), Resident: s[2].Value.Uint64()}, nil
}
