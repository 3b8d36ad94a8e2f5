//go:build !unix

package audit

import "os"

// lockFile opens the file. On these systems nothing keeps two auditors apart.
func lockFile(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_RDWR, privateFile)
}
