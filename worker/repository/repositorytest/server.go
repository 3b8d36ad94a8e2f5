// Package repositorytest is a git server on this machine, for tests: it speaks version 2 of the protocol over HTTP, and gives away one
// commit at a time, as those of git do. What it holds may be anything, also what git would refuse.
package repositorytest

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"hash/adler32"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/pjbgf/sha1cd"

	"github.com/longshore-run/longshore/worker/repository/pack"
)

// Path is that of the repository on the server.
const Path = "/team/project.git"

// Server holds objects. Safe for concurrent use.
type Server struct {
	URL  string // of the repository
	Host string // with the port
	CA   []byte // the certificate of its CA, PEM; nil: it does not speak HTTPS

	mu       sync.Mutex // guards what follows
	before   func(http.ResponseWriter, *http.Request) bool
	instead  []byte
	objects  map[string]object
	fetches  int // answered with a pack
	requests int
}

type object struct {
	kind    string
	content []byte
	below   []string
}

// New starts a server, which ends with the test.
func New(t *testing.T) *Server {
	t.Helper()
	s := &Server{objects: map[string]object{}}
	s.at(t, httptest.NewServer(s))
	return s
}

// NewTLS is New with HTTPS and a certificate of a CA that only the test knows.
func NewTLS(t *testing.T) *Server {
	t.Helper()
	s := &Server{objects: map[string]object{}}
	h := httptest.NewUnstartedServer(s)
	h.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError) // of clients that do not trust it
	h.StartTLS()
	s.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.Certificate().Raw})
	s.at(t, h)
	return s
}

func (s *Server) at(t *testing.T, h *httptest.Server) {
	t.Helper()
	t.Cleanup(h.Close)
	_, s.Host, _ = strings.Cut(h.URL, "://")
	s.URL = h.URL + Path
}

// Before has a function handle requests in place of the server, as far as it reports that it did. Bodies of requests were read.
func (s *Server) Before(f func(http.ResponseWriter, *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = f
}

// Send has a pack be sent in place of what a commit needs.
func (s *Server) Send(pack []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.instead = pack
}

// Fetches is how many packs were sent.
func (s *Server) Fetches() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fetches
}

// Requests is how many requests came, of any kind.
func (s *Server) Requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

func (s *Server) add(kind string, content []byte, below ...string) string {
	sum := sha1cd.New()
	_, _ = fmt.Fprintf(sum, "%s %d\x00", kind, len(content))
	_, _ = sum.Write(content)
	id := hex.EncodeToString(sum.Sum(nil))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[id] = object{kind, content, below}
	return id
}

// Blob adds a content.
func (s *Server) Blob(content string) string { return s.add("blob", []byte(content)) }

// Entry is a name in a folder.
type Entry struct{ Mode, Name, ID string }

// Tree adds a folder with its names in the order in which they are given.
func (s *Server) Tree(entries ...Entry) string {
	var b bytes.Buffer
	var below []string
	for _, e := range entries {
		id, err := pack.ParseID(e.ID)
		if err != nil {
			panic(err)
		}
		_, _ = fmt.Fprintf(&b, "%s %s\x00%s", e.Mode, e.Name, id[:])
		if e.Mode != "160000" {
			below = append(below, e.ID)
		}
	}
	return s.add("tree", b.Bytes(), below...)
}

// Commit adds a commit of a folder.
func (s *Server) Commit(tree string) string {
	return s.add("commit", fmt.Appendf(nil, "tree %s\nauthor A <a@example.com> 0 +0000\ncommitter A <a@example.com> 0 +0000\n\nA commit\n", tree), tree)
}

// Tag adds an annotated tag of a commit.
func (s *Server) Tag(commit string) string {
	return s.add("tag", fmt.Appendf(nil, "object %s\ntype commit\ntag v1\n\nA tag\n", commit), commit)
}

// Files adds a commit with files by their paths.
func (s *Server) Files(files map[string]string) string { return s.Commit(s.folder(files)) }

func (s *Server) folder(files map[string]string) string {
	var entries []Entry
	below := map[string]map[string]string{}
	for path, content := range files {
		name, rest, ok := strings.Cut(path, "/")
		switch {
		case !ok:
			entries = append(entries, Entry{"100644", name, s.Blob(content)})
		case below[name] == nil:
			below[name] = map[string]string{rest: content}
		default:
			below[name][rest] = content
		}
	}
	for name, files := range below {
		entries = append(entries, Entry{"40000", name, s.folder(files)})
	}
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return s.Tree(entries...)
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests++
	before := s.before
	s.mu.Unlock()
	asked, err := io.ReadAll(r.Body) // until then a server does not see that a client is gone
	if err != nil || before != nil && before(w, r) {
		return
	}
	switch {
	case r.Header.Get("Git-Protocol") != "version=2":
		http.Error(w, "only version 2 of the protocol", http.StatusBadRequest)
	case r.URL.Path == Path+"/info/refs" && r.URL.RawQuery == "service=git-upload-pack":
		w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
		_, _ = io.WriteString(w, Line("# service=git-upload-pack\n")+"0000"+Line("version 2\n")+Line("agent=test\n")+Line("fetch=shallow filter\n")+Line("object-format=sha1\n")+"0000")
	case r.URL.Path == Path+"/git-upload-pack" && r.Method == http.MethodPost:
		w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
		s.fetch(w, asked)
	default:
		http.NotFound(w, r)
	}
}

// Line is a line of the protocol.
func Line(text string) string { return fmt.Sprintf("%04x%s", len(text)+4, text) }

func (s *Server) fetch(w io.Writer, asked []byte) {
	want := ""
	for in := bytes.NewReader(asked); ; {
		var head [4]byte
		if _, err := io.ReadFull(in, head[:]); err != nil || string(head[:]) == "0000" {
			break
		}
		n, err := strconv.ParseUint(string(head[:]), 16, 16)
		if err != nil || n < 4 { // a mark
			continue
		}
		line := make([]byte, n-4)
		if _, err := io.ReadFull(in, line); err != nil {
			break
		}
		if id, ok := strings.CutPrefix(strings.TrimSpace(string(line)), "want "); ok {
			want = id
		}
	}
	s.mu.Lock()
	_, ok := s.objects[want]
	data := s.instead
	if ok && data == nil {
		data = s.pack(want)
	}
	if ok {
		s.fetches++
	}
	s.mu.Unlock()
	if !ok {
		_, _ = io.WriteString(w, Line("ERR upload-pack: not our ref "+want))
		return
	}
	_, _ = io.WriteString(w, Line("shallow-info\n")+Line("shallow "+want+"\n")+"0001"+Line("packfile\n")+Line("\x02Counting\n"))
	SendPack(w, data)
	_, _ = io.WriteString(w, "0000")
}

// SendPack sends a pack in lines.
func SendPack(w io.Writer, data []byte) {
	const most = 65515
	for chunk := range slices.Chunk(data, most) {
		if _, err := io.WriteString(w, Line("\x01"+string(chunk))); err != nil {
			return
		}
	}
}

// pack has the objects that an object needs, which stands in mu.
func (s *Server) pack(want string) []byte {
	seen, todo := map[string]bool{}, []string{want}
	var entries [][]byte
	for len(todo) > 0 {
		id := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[id] {
			continue
		}
		seen[id] = true
		o := s.objects[id]
		kind := map[string]byte{"commit": 1, "tree": 2, "blob": 3, "tag": 4}[o.kind]
		entries = append(entries, PackEntry(kind, len(o.content), nil, o.content))
		todo = append(todo, o.below...)
	}
	return Pack(len(entries), entries...)
}

// Pack is a pack that says that it has n entries.
func Pack(n int, entries ...[]byte) []byte {
	b := append([]byte("PACK\x00\x00\x00\x02"), binary.BigEndian.AppendUint32(nil, uint32(n))...)
	for _, e := range entries {
		b = append(b, e...)
	}
	sum := sha1cd.New()
	_, _ = sum.Write(b)
	return sum.Sum(b)
}

// PackEntry is an entry of a pack which says that its content has size bytes. The base of a delta stands before the content.
func PackEntry(kind byte, size int, base, content []byte) []byte {
	var b bytes.Buffer
	first, rest := kind<<4|byte(size&15), size>>4
	for rest > 0 {
		b.WriteByte(first | 0x80)
		first, rest = byte(rest&0x7f), rest>>7
	}
	b.WriteByte(first)
	b.Write(base)
	const small = 1 << 10 // a compressor costs more than it saves
	if n := len(content); n < small {
		b.Write([]byte{0x78, 0x01, 0x01, byte(n), byte(n >> 8), ^byte(n), ^byte(n >> 8)})
		b.Write(content)
		b.Write(binary.BigEndian.AppendUint32(nil, adler32.Checksum(content)))
		return b.Bytes()
	}
	z := zlib.NewWriter(&b)
	_, _ = z.Write(content)
	_ = z.Close()
	return b.Bytes()
}
