package settings

import (
	"net/url"
	"strings"
)

// Links is where the console is, for commands that print the address of a run.
type Links struct {
	Console string `env:"LONGSHORE_CONSOLE"     envDefault:"on" help:"off: commands print no links to the console"`
	Page    string `env:"LONGSHORE_CONSOLE_URL" help:"the address of the console in links, such as https://longshore.example.com (default LONGSHORE_URL)"`
}

// Check returns an *Error.
func (s *Links) Check() error {
	if s.Console != "on" && s.Console != "off" && s.Console != "" {
		return Errorf("LONGSHORE_CONSOLE: must be on or off")
	}
	if s.Page != "" && page(s.Page) == "" {
		return Errorf("LONGSHORE_CONSOLE_URL: must be an http or https address such as https://longshore.example.com, without user and query")
	}
	return nil
}

// Pages is the address of the console without a slash at its end; empty: there is none, or its address is not known.
func (s *Client) Pages() string {
	switch {
	case s.Console == "off":
		return ""
	case s.Page != "":
		return page(s.Page)
	default:
		return page(s.API)
	}
}

// page is an address that may be shown in a terminal and followed; empty if it is none.
func page(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || (u.Scheme != "http" && u.Scheme != "https") {
		return ""
	}
	return strings.TrimRight(u.String(), "/")
}
