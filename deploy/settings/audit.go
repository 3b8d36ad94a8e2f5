package settings

import (
	"errors"
	"time"

	"github.com/longshore-run/longshore/messages/strict"
)

// Audit is the environment of `longshore audit run`. Its flags say the same.
type Audit struct {
	NATS
	Logs
	Encryption
	Dir         string        `env:"LONGSHORE_AUDIT_DIR"       help:"folder of the audit"`
	KeyFile     string        `env:"LONGSHORE_AUDIT_KEY_FILE"  help:"file with the signing key, as longshore audit key writes it"`
	Keys        string        `env:"LONGSHORE_AUDIT_KEYS"      help:"public keys of accepted signatures, comma separated: the previous keys (run), all keys (verify, export)"`
	Retention   time.Duration `env:"LONGSHORE_AUDIT_RETENTION" envDefault:"0s"          help:"how long entries are kept; 0 means forever"`
	Store       string        `env:"LONGSHORE_AUDIT_STORE"     help:"NATS object store to which segments and heads are copied, such as AUDIT (default: none)"`
	HTTPAddr    string        `env:"LONGSHORE_HTTP_ADDR"       envDefault:"127.0.0.1:0" help:"metrics and health; port 0 picks a free one"`
	ControlKeys string        `env:"LONGSHORE_CONTROL_KEYS"    help:"public keys of signed decisions, the same as those of dispatchers and workers"`
}

// Check returns an *Error.
func (s *Audit) Check() error {
	if err := errors.Join(s.NATS.Check(), s.Logs.Check(), CheckListen("LONGSHORE_HTTP_ADDR", s.HTTPAddr)); err != nil {
		return first(err)
	}
	switch {
	case s.Dir == "":
		return Errorf("LONGSHORE_AUDIT_DIR is missing: the folder of the audit, or --dir")
	case s.KeyFile == "":
		return Errorf("LONGSHORE_AUDIT_KEY_FILE is missing: the key that signs, or --key; `longshore audit key FILE` makes one")
	case s.Store != "" && !strict.ValidToken(s.Store):
		return Errorf("LONGSHORE_AUDIT_STORE: must be 1 to 64 characters of A-Z a-z 0-9 _ -")
	case s.Retention < 0:
		return Errorf("LONGSHORE_AUDIT_RETENTION: must not be below 0")
	}
	_, err := s.Master() // without a keyset runs whose logs are encrypted are not compared
	return err
}
