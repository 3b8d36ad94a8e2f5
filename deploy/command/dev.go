package command

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/dispatcher/agents"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/observability"
)

// devCommand is `longshore dev`.
func (p *Process) devCommand() *cobra.Command {
	var cfg fleet.DevConfig
	var readyFile string
	var open bool
	cmd := &cobra.Command{
		Use: "dev", SuggestFor: []string{"start", "serve", "up"}, Short: "Run the whole fleet in one process, with NATS and a Redis-compatible store inside",
		Long: "Run dispatcher, worker, NATS and a Redis-compatible store in one process. Workers and clients in other\n" +
			"processes can connect to it. The store behind the Redis address is in memory; queue and logs are in --data.\n\n" +
			"Environment variables, unless a flag is given:\n\n" + settings.Describe(&settings.Dev{}),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if open && p.env("LONGSHORE_CONSOLE") == "off" {
				return usageError("--open: LONGSHORE_CONSOLE is off: unset it")
			}
			if err := removeReady(readyFile); err != nil {
				return usageError("--ready-file: " + err.Error())
			}
			if err := freeAddresses(cmd, &cfg); err != nil {
				return err
			}
			dev, err := p.startDev(cmd, &cfg, "info")
			if err != nil {
				return err
			}
			if readyFile != "" {
				if err := writeReady(readyFile, dev); err != nil {
					return errors.Join(err, dev.Stop())
				}
			}
			sayReady(cmd, &cfg, dev)
			if open {
				p.openPages(cmd, pagesOf(&cfg, dev))
			}
			slots := 0
			if !cfg.NoWorker {
				slots = cfg.Slots
				sayScripted(cmd, dev)
			}
			defer p.keepHeap(cmd.Context(), cfg.MemoryLimit, slots)()
			err = dev.Keep(cmd.Context(), &cfg)
			if cmd.Context().Err() != nil {
				sayStopping(cmd.ErrOrStderr(), dev.Held(), cfg.DrainTimeout, "at the next start")
			}
			return errors.Join(err, dev.Stop())
		},
	}
	f := cmd.Flags()
	f.StringVar(&cfg.HTTPAddr, "addr", "127.0.0.1:8420", "address for HTTP; port 0 picks a free one")
	f.StringVar(&cfg.NATSAddr, "nats-addr", "127.0.0.1:4222", "address for NATS")
	f.StringVar(&cfg.RedisAddr, "redis-addr", "127.0.0.1:6379", "address for the Redis-compatible store")
	f.StringVar(&cfg.Dir, "data", "longshore-data", "folder for queue, logs and files")
	f.IntVar(&cfg.Slots, "slots", 0, "runs worked at once (default LONGSHORE_SLOTS)")
	f.BoolVar(&cfg.NoWorker, "no-worker", false, "leave the worker out")
	f.StringVar(&cfg.Agents, "agents", "", "folder with agent definitions")
	f.BoolVar(&open, "open", false, "open the console in a browser: the program that BROWSER names, or the one of the desktop")
	f.StringVar(&readyFile, "ready-file", "", "file to write the addresses to once everything accepts work")
	return cmd
}

// freeAddresses moves what would listen on a taken port to the next free one, unless its flag was given.
func freeAddresses(cmd *cobra.Command, cfg *fleet.DevConfig) error {
	for _, a := range []struct {
		flag string
		addr *string
	}{{"addr", &cfg.HTTPAddr}, {"nats-addr", &cfg.NATSAddr}, {"redis-addr", &cfg.RedisAddr}} {
		free, err := fleet.FreeAddress(cmd.Context(), "--"+a.flag, *a.addr, cmd.Flags().Changed(a.flag))
		if err != nil {
			return err
		}
		if free != *a.addr {
			fmt.Fprintf(cmd.ErrOrStderr(), "--%s: something listens on %s already: using %s\n", a.flag, *a.addr, free)
			*a.addr = free
		}
	}
	return nil
}

// sayReady says where the fleet is and, to a person, what to do next.
func sayReady(cmd *cobra.Command, cfg *fleet.DevConfig, dev *fleet.Dev) {
	w := cmd.ErrOrStderr()
	fmt.Fprintf(w, "longshore is ready: %s://%s, %s, %s\n", dev.Scheme, dev.API, dev.NATS, dev.Redis)
	pages, links := pagesOf(cfg, dev), ""
	if pages != "" {
		fmt.Fprintf(w, "console: %s/\n", pages)
		links = " LONGSHORE_CONSOLE_URL=" + pages
	}
	if !cfg.On() {
		fmt.Fprintln(w, "Authentication is disabled: anyone who reaches these addresses may do everything, for every tenant.")
	}
	if render.IsTerminal(w) {
		fmt.Fprintf(w, "\n  In another terminal:\n    export NATS_URL=%s%s\n    longshore run \"Say hello\"\n\n  HTTP API: %s://%s   Data: %s   Stop: Ctrl-C\n\n",
			dev.NATS, links, dev.Scheme, dev.API, cfg.Dir)
	}
}

// startDev starts the fleet in this process by its environment and flags.
func (p *Process) startDev(cmd *cobra.Command, cfg *fleet.DevConfig, level string) (*fleet.Dev, error) {
	var s settings.Dev
	if err := settings.Load(&s, p.Environ()); err != nil {
		return nil, err
	}
	if slots := cfg.Slots; slots != 0 || cmd.Flags().Changed("slots") {
		s.Slots = slots
		if err := s.Check(); err != nil {
			return nil, usageError("--slots: " + err.Error())
		}
	}
	if cfg.Agents != "" {
		if _, err := agents.Load(cfg.Agents); err != nil {
			return nil, &render.UsageError{Err: err}
		}
	}
	if p.env("LONGSHORE_LOG_LEVEL") == "" {
		s.Level = level
	}
	w := cmd.ErrOrStderr()
	if render.IsTerminal(w) && p.env("LONGSHORE_LOG_FORMAT") == "" {
		w = observability.Console(w, p.terminal(w, w).Color)
	}
	log, err := observability.NewLogger(w, observability.LogConfig{Level: s.Level, Format: s.Format, Redact: settings.Secrets(s)})
	if err != nil {
		return nil, err
	}
	cfg.Dev, cfg.Version, cfg.Log = s, p.Version, log
	return fleet.StartDev(cmd.Context(), *cfg)
}

func sayScripted(cmd *cobra.Command, dev *fleet.Dev) {
	if dev.Scripted {
		fmt.Fprintln(cmd.ErrOrStderr(), "No model is configured: the built-in script answers. Set OPENAI_API_KEY and OPENAI_MODEL, or ANTHROPIC_API_KEY and ANTHROPIC_MODEL, for a real one.")
	}
}
