package bus

// Appending makes it look as if so many appends were on their way.
func (b *Bus) Appending(n int64) { b.lull.appends.Add(n) }

// FewAppends is how many appends hold nothing back.
const FewAppends = fewAppends
