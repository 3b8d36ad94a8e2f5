package render

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// Ago is a flag with how far back: a duration as Go writes it, or whole days such as 7d.
type Ago time.Duration

// String implements pflag.Value.
func (a *Ago) String() string {
	switch d := time.Duration(*a); {
	case d == 0:
		return ""
	case d%time.Hour == 0:
		return strconv.Itoa(int(d/time.Hour)) + "h"
	default:
		return d.String()
	}
}

// Set implements pflag.Value.
func (a *Ago) Set(s string) error {
	if text, ok := strings.CutSuffix(s, "d"); ok {
		const most = 36500 // 100 years
		if days, err := strconv.Atoi(text); err == nil && days >= 0 && days <= most {
			*a = Ago(time.Duration(days) * Day)
			return nil
		}
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return errors.New("must be a time such as 90m, 12h or 7d") //nolint:err113 // for people; callers do not branch on it
	}
	*a = Ago(d)
	return nil
}

// Type implements pflag.Value.
func (*Ago) Type() string { return "duration" }
