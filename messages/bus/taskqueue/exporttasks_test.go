package taskqueue

// TakePage is how many messages are asked for at once.
const TakePage = takePage
