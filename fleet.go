package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/dispatcher/agents"
	"github.com/longshore-run/longshore/dispatcher/cli"
)

func dispatcherCommand() *cobra.Command {
	return &cobra.Command{
		Use: "dispatcher", Short: "Run a dispatcher: the service that clients ask, and the keeper of the streams",
		Long: "Run a dispatcher process. It is configured by its environment:\n\n" + settings.Describe(&settings.Dispatcher{}),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var s settings.Dispatcher
			if err := settings.Load(&s, os.Environ()); err != nil {
				return err
			}
			log, err := logger(cmd, s.Logs, settings.Secrets(s))
			if err != nil {
				return err
			}
			return fleet.Dispatcher(cmd.Context(), s, version, log, nil)
		},
	}
}

func workerCommand() *cobra.Command {
	return &cobra.Command{
		Use: "worker", Short: "Run a worker: a member of the fleet that works tasks",
		Long: "Run a worker process. It is configured by its environment:\n\n" + settings.Describe(&settings.Worker{}),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var s settings.Worker
			if err := settings.Load(&s, os.Environ()); err != nil {
				return err
			}
			if s.Name == "" {
				s.Name = fleet.WorkerName()
			}
			tuneGC(s.Slots)
			log, err := logger(cmd, s.Logs, settings.Secrets(s))
			if err != nil {
				return err
			}
			return fleet.Worker(cmd.Context(), s, version, log, fleet.Parts{}, nil)
		},
	}
}

func devCommand() *cobra.Command {
	var cfg fleet.DevConfig
	var readyFile string
	cmd := &cobra.Command{
		Use: "dev", Short: "Run the whole fleet in one process, with NATS and a Redis-compatible store inside",
		Long: "Run dispatcher, worker, NATS and a Redis-compatible store in one process. Workers and clients of other\n" +
			"processes can connect to it. The store behind the Redis address is in memory; queue and logs are in --data.\n\n" +
			"Its environment, where that is not said by a flag:\n\n" + settings.Describe(&settings.Dev{}),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dev, err := startDev(cmd, &cfg, "info")
			if err != nil {
				return err
			}
			if readyFile != "" {
				if err := writeReady(readyFile, dev); err != nil {
					return errors.Join(err, dev.Stop())
				}
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "longshore is ready: %s://%s, %s, %s\n", dev.Scheme, dev.API, dev.NATS, dev.Redis)
			if !cfg.Access.On() {
				fmt.Fprintln(cmd.ErrOrStderr(), "It has no authentication: whoever reaches these addresses may do everything, for every tenant.")
			}
			if !cfg.NoWorker {
				sayScripted(cmd, dev)
			}
			select {
			case <-cmd.Context().Done():
			case <-dev.Done():
			}
			return dev.Stop()
		},
	}
	f := cmd.Flags()
	f.StringVar(&cfg.HTTPAddr, "addr", "127.0.0.1:8420", "address for HTTP; port 0 picks a free one")
	f.StringVar(&cfg.NATSAddr, "nats-addr", "127.0.0.1:4222", "address for NATS")
	f.StringVar(&cfg.RedisAddr, "redis-addr", "127.0.0.1:6379", "address for the Redis-compatible store")
	f.StringVar(&cfg.Dir, "data", "longshore-data", "folder for queue, logs and files")
	f.IntVar(&cfg.Worker.Slots, "slots", 0, "runs worked at once (default LONGSHORE_SLOTS)")
	f.BoolVar(&cfg.NoWorker, "no-worker", false, "leave the worker out")
	f.StringVar(&cfg.Agents, "agents", "", "folder with agent definitions")
	f.StringVar(&readyFile, "ready-file", "", "file to write the addresses to once everything accepts work")
	return cmd
}

// startDev starts the fleet in this process by its environment and flags.
func startDev(cmd *cobra.Command, cfg *fleet.DevConfig, level string) (*fleet.Dev, error) {
	var s settings.Dev
	if err := settings.Load(&s, os.Environ()); err != nil {
		return nil, err
	}
	if slots := cfg.Worker.Slots; slots != 0 || cmd.Flags().Changed("slots") {
		s.Slots = slots
		if err := s.Check(); err != nil {
			return nil, usageError("--slots: " + err.Error())
		}
	}
	if cfg.Agents != "" {
		if _, err := agents.Load(cfg.Agents); err != nil {
			return nil, &cli.UsageError{Err: err}
		}
	}
	if os.Getenv("LONGSHORE_LOG_LEVEL") == "" {
		s.Level = level
	}
	log, err := logger(cmd, s.Logs, settings.Secrets(s))
	if err != nil {
		return nil, err
	}
	cfg.Webhooks = s.Webhooks
	cfg.Models, cfg.AckWait, cfg.Retention, cfg.Lite, cfg.Version, cfg.Log = s.Models, s.AckWait, s.Retention, s.LiteTimeout, version, log
	cfg.Access = s.Access
	workspaces := cfg.Worker.Workspaces
	cfg.Worker = s.Worker()
	cfg.Worker.Workspaces = workspaces
	tuneGC(cfg.Worker.Slots)
	return fleet.StartDev(cmd.Context(), *cfg)
}

// tuneGC leaves the collector as the operator wants it.
func tuneGC(slots int) {
	if os.Getenv("GOGC") == "" {
		fleet.TuneGC(slots)
	}
}

func sayScripted(cmd *cobra.Command, dev *fleet.Dev) {
	if dev.Scripted {
		fmt.Fprintln(cmd.ErrOrStderr(), "No model is configured: the built-in script answers. Set OPENAI_API_KEY and OPENAI_MODEL, or ANTHROPIC_API_KEY and ANTHROPIC_MODEL, for a real one.")
	}
}

// writeReady writes the addresses at once, so that a reader never sees half of them.
func writeReady(file string, dev *fleet.Dev) error {
	body, err := json.Marshal(map[string]string{"api": dev.Scheme + "://" + dev.API, "nats": dev.NATS, "redis": dev.Redis})
	if err != nil {
		return fmt.Errorf("encode addresses: %w", err)
	}
	temp := file + ".tmp"
	if err := os.WriteFile(temp, append(body, '\n'), 0o600); err != nil {
		return fmt.Errorf("write ready file: %w", err)
	}
	if err := os.Rename(temp, file); err != nil {
		return fmt.Errorf("write ready file: %w", err)
	}
	return nil
}
