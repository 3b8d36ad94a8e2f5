package request

// MaxPageBytes bounds the entries of one page.
const MaxPageBytes = 512 << 10

const pageRoom = 4 << 10 // of a message, for what surrounds the entries of a page

// Room is the size of the largest message that the server takes, in bytes: the MaxPayload of a connection, which may change
// when it reconnects.
type Room func() int64

// Page is how many bytes the entries of one page may have.
func (r Room) Page() int { return min(MaxPageBytes, r.Beside(pageRoom)) }

// Beside is how many bytes of a message are left after a frame of so many bytes.
func (r Room) Beside(frame int) int { return int(r()) - frame }
