package memory

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

const (
	dialTimeout  = time.Second // continues in the background when an operation has given up
	readTimeout  = time.Second // only where a context has no deadline
	noRetries    = -1          // the circuit decides when to ask again
	dialAttempts = 1
)

// errURL tells nothing of the URL, every part of which may hold a piece of a password that was not escaped.
var errURL = errors.New("want redis://[user:password@]host:port[/db][?option=value], rediss:// for TLS, " +
	"and addr=host:port for each further node of a cluster; escape special characters in a password with %XX")

// Connect returns a client for one Redis, or for a cluster if the URL names further nodes (the same one again will do
// for a cluster behind one address). It does not connect yet. The options are those of go-redis; by default
// nothing is retried, and a dial may take a second. No error holds any part of the URL. The caller closes the client.
func Connect(redisURL string) (redis.UniversalClient, error) {
	u, err := url.Parse(redisURL)
	if err != nil || u.Host == "" || (u.Scheme != "redis" && u.Scheme != "rediss") {
		return nil, fmt.Errorf("redis url: %w", errURL)
	}
	if u.Query().Has("addr") {
		return connectCluster(u)
	}
	o, err := redis.ParseURL(redisURL)
	if err != nil {
		return nil, fmt.Errorf("redis url: %w", errURL)
	}
	setDefault(&o.MaxRetries, noRetries)
	setDefault(&o.DialerRetries, dialAttempts)
	setDefault(&o.DialTimeout, dialTimeout)
	setDefault(&o.ReadTimeout, readTimeout)
	o.ContextTimeoutEnabled = true
	o.DisableIdentity = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return redis.NewClient(o), nil
}

func connectCluster(u *url.URL) (redis.UniversalClient, error) {
	if strings.Trim(u.Path, "/0") != "" {
		return nil, errors.New("redis url: a cluster has database 0 alone")
	}
	o, err := redis.ParseClusterURL(u.String())
	if err != nil {
		return nil, fmt.Errorf("redis url: %w", errURL)
	}
	setDefault(&o.MaxRetries, noRetries)
	setDefault(&o.DialerRetries, dialAttempts)
	setDefault(&o.DialTimeout, dialTimeout)
	setDefault(&o.ReadTimeout, readTimeout)
	o.ContextTimeoutEnabled = true
	o.DisableIdentity = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return redis.NewClusterClient(o), nil
}

func setDefault[T comparable](field *T, value T) {
	*field = orDefault(*field, value)
}
