package stage

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/longshore-run/longshore/worker/memory"
)

// redisServer is a redis-server of the machine that keeps everything in memory.
type redisServer struct {
	cmd     *exec.Cmd
	client  redis.UniversalClient
	url     string
	version string
}

const (
	redisStart = 10 * time.Second
	redisPoll  = 10 * time.Millisecond
)

// startRedis returns nil when the machine has no redis-server.
func startRedis(ctx context.Context, dir string) (*redisServer, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, nil //nolint:nilerr // then the embedded one will do
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make folder for redis: %w", err)
	}
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, path, "--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no", "--dir", dir)
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start redis-server: %w", err)
	}
	addr := net.JoinHostPort("127.0.0.1", port)
	r := &redisServer{cmd: cmd, url: "redis://" + addr + "/0"}
	if err := r.connect(ctx, addr); err != nil {
		return nil, errors.Join(fmt.Errorf("start redis-server: %w", err), r.stop())
	}
	return r, nil
}

// connect waits until the server accepts connections, and asks for its version.
func (r *redisServer) connect(ctx context.Context, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, redisStart)
	defer cancel()
	var d net.Dialer
	for {
		conn, err := d.DialContext(ctx, "tcp", addr)
		if err == nil {
			_ = conn.Close() // nothing was sent
			break
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(redisPoll):
		}
	}
	var err error
	if r.client, err = memory.Connect(r.url); err != nil {
		return err
	}
	info, err := r.info(ctx, "server")
	r.version = "redis-server " + info["redis_version"]
	return err
}

// info is a section of what the server says of itself.
func (r *redisServer) info(ctx context.Context, section string) (map[string]string, error) {
	text, err := r.client.Info(ctx, section).Result()
	if err != nil {
		return nil, fmt.Errorf("ask redis for info: %w", err)
	}
	out := map[string]string{}
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		if k, v, ok := strings.Cut(lines.Text(), ":"); ok {
			out[k] = v
		}
	}
	return out, nil
}

func (r *redisServer) cpuSeconds(ctx context.Context) (float64, error) {
	info, err := r.info(ctx, "cpu")
	if err != nil {
		return 0, err
	}
	user, err := strconv.ParseFloat(info["used_cpu_user"], 64)
	sys, errSys := strconv.ParseFloat(info["used_cpu_sys"], 64)
	if err := errors.Join(err, errSys); err != nil {
		return 0, fmt.Errorf("read CPU time of redis: %w", err)
	}
	return user + sys, nil
}

// stop ends the server by its own handle. That it was killed is no error.
func (r *redisServer) stop() error {
	if r.client != nil {
		_ = r.client.Close() // fails only when it is closed
	}
	_ = r.cmd.Process.Kill() // fails only when it has ended; it has nothing to save
	err := r.cmd.Wait()
	var exit *exec.ExitError
	if err == nil || errors.As(err, &exit) {
		return nil
	}
	return fmt.Errorf("stop redis-server: %w", err)
}

// freePort is a port that was free a moment ago: redis-server cannot pick one by itself.
func freePort(ctx context.Context) (string, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, errors.Join(err, l.Close())
}
