package process

import "time"

// Limits bound what a program uses. Zero means the default.
type Limits struct {
	Wall         time.Duration // From start to SIGTERM. Default 30 s.
	Grace        time.Duration // From SIGTERM to SIGKILL. Default 2 s.
	CPU          time.Duration // CPU time of each process, in whole seconds, rounded up. Default 10 s.
	Memory       int64         // Bytes of private memory of each process, and of all together; see [MemoryLimit]. Default 512 MiB.
	AddressSpace int64         // Bytes of addresses of each process, reserved ones and shared memory included. Default 4 GiB.
	Processes    int           // Processes and threads at once, where [LayerProcesses] is enforced. Default 64.
	OpenFiles    int           // Open files of each process. Default 256.
	FileSize     int64         // Bytes of one file that it writes. Default 64 MiB.
	Temp         int64         // Bytes in the temporary folder. Default 64 MiB.
	Output       int64         // Bytes of standard output and standard error together. Default 1 MiB.
}

const (
	defaultWall         = 30 * time.Second
	defaultGrace        = 2 * time.Second
	defaultCPU          = 10 * time.Second
	defaultMemory       = 512 << 20
	defaultAddressSpace = 4 << 30
	defaultProcesses    = 64
	defaultOpenFiles    = 256
	defaultFileSize     = 64 << 20
	defaultTemp         = 64 << 20
	defaultOutput       = 1 << 20
)

// or returns l with the zero fields of other.
func (l Limits) or(other Limits) Limits {
	return Limits{
		Wall:         first(l.Wall, other.Wall),
		Grace:        first(l.Grace, other.Grace),
		CPU:          first(l.CPU, other.CPU),
		Memory:       first(l.Memory, other.Memory),
		AddressSpace: first(l.AddressSpace, other.AddressSpace),
		Processes:    first(l.Processes, other.Processes),
		OpenFiles:    first(l.OpenFiles, other.OpenFiles),
		FileSize:     first(l.FileSize, other.FileSize),
		Temp:         first(l.Temp, other.Temp),
		Output:       first(l.Output, other.Output),
	}
}

func (l Limits) withDefaults() Limits {
	return l.or(Limits{
		Wall: defaultWall, Grace: defaultGrace, CPU: defaultCPU, Memory: defaultMemory, AddressSpace: defaultAddressSpace,
		Processes: defaultProcesses, OpenFiles: defaultOpenFiles, FileSize: defaultFileSize, Temp: defaultTemp, Output: defaultOutput,
	})
}

// first returns a if it is positive, and b otherwise: no limit can be switched off.
func first[T time.Duration | int | int64](a, b T) T {
	if a > 0 {
		return a
	}
	return b
}
