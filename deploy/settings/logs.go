package settings

// Logs says how to log.
type Logs struct {
	Level  string `env:"LONGSHORE_LOG_LEVEL"  envDefault:"info" help:"debug, info, warn or error"`
	Format string `env:"LONGSHORE_LOG_FORMAT" envDefault:"json" help:"json or text"`
}

// Check returns an *Error.
func (s *Logs) Check() error {
	switch s.Level {
	case "debug", "info", "warn", "error":
	default:
		return Errorf("LONGSHORE_LOG_LEVEL: %q is not debug, info, warn or error", s.Level)
	}
	if s.Format != "json" && s.Format != "text" {
		return Errorf("LONGSHORE_LOG_FORMAT: %q is not json or text", s.Format)
	}
	return nil
}
